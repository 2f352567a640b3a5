/**
 * Writes DER (ITU-T X.690) as far as certificates need it. Every function returns one complete element. node:crypto
 * reads DER.
 */
import { invariant } from '#lib/invariant.ts';

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;

/** RFC 5280 4.1.2.5: years up to 2049 are UTCTime, later ones GeneralizedTime. */
const FIRST_GENERALIZED_YEAR = 2050;

function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), length(body.length), body]);
}

function length(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.from([bytes]);
  const digits = unsignedBytes(bytes);
  return Buffer.from([0x80 | digits.length, ...digits]);
}

/** Big-endian without leading zeros; 0 is one zero byte. */
function unsignedBytes(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.unshift(rest % 256);
    rest = Math.floor(rest / 256);
  } while (rest > 0);
  return bytes;
}

export function sequence(...items: readonly Buffer[]): Buffer {
  return element(TAG.sequence, ...items);
}

/** A set with one item. DER sorts the items of larger sets, which certificates do not need here. */
export function setOfOne(item: Buffer): Buffer {
  return element(TAG.set, item);
}

/** A non-negative integer, given as a number or as big-endian bytes. */
export function integer(value: number | Buffer): Buffer {
  const bytes = typeof value === 'number' ? Buffer.from(unsignedBytes(value)) : value;
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  // A set top bit would read as negative.
  const sign = (digits[0] ?? 0) >= 0x80 ? [0] : [];
  return element(TAG.integer, Buffer.from(sign), digits);
}

export function boolean(value: boolean): Buffer {
  return element(TAG.boolean, Buffer.from([value ? 0xff : 0x00]));
}

export function oid(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split('.').map(Number);
  invariant(first !== undefined && second !== undefined, `"${dotted}" is an object identifier`);
  return element(TAG.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128));
  return bytes;
}

export function utf8String(text: string): Buffer {
  return element(TAG.utf8String, Buffer.from(text, 'utf8'));
}

export function octetString(bytes: Buffer): Buffer {
  return element(TAG.octetString, bytes);
}

/** A bit string. The lowest `unusedBits` bits of the last byte are not part of it. */
export function bitString(bytes: Buffer, unusedBits = 0): Buffer {
  return element(TAG.bitString, Buffer.from([unusedBits]), bytes);
}

/** A named-bit list such as keyUsage: bit 0 is the highest; DER drops trailing zero bits. */
export function namedBits(bits: readonly number[]): Buffer {
  const last = Math.max(...bits);
  invariant(bits.length > 0 && last < 8, 'a named-bit list has one byte here');
  const byte = bits.reduce((sum, bit) => sum | (0x80 >> bit), 0);
  return bitString(Buffer.from([byte]), 7 - last);
}

/** A time in UTC with whole seconds. */
export function timeElement(epochMs: number): Buffer {
  const instant = new Date(epochMs);
  const digits = `${instant.toISOString().slice(0, 19).replaceAll(/[-T:]/g, '')}Z`;
  return instant.getUTCFullYear() < FIRST_GENERALIZED_YEAR
    ? element(TAG.utcTime, Buffer.from(digits.slice(2), 'latin1'))
    : element(TAG.generalizedTime, Buffer.from(digits, 'latin1'));
}

/** `[number] EXPLICIT`: the item keeps its own tag inside. */
export function explicit(number: number, item: Buffer): Buffer {
  return element(CONTEXT | CONSTRUCTED | number, item);
}

/** `[number] IMPLICIT` of a primitive type: the number replaces its tag. */
export function implicit(number: number, contents: Buffer): Buffer {
  return element(CONTEXT | number, contents);
}

/** The empty set of attributes at the end of a certificate request. */
export function noAttributes(): Buffer {
  return element(CONTEXT | CONSTRUCTED);
}
