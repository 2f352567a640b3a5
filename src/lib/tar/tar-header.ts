/** Parses and prints headers of tar archives: ustar with the extensions of GNU and POSIX (pax). Pure. */
import { quoteText } from '#lib/text/quote-text.ts';

export const BLOCK = 512;
/** The largest number with eleven octal digits. */
const MAX_OCTAL_SIZE = 8 ** 11 - 1;
const MAX_NAME = 100;
const MAX_PREFIX = 155;
const CHECKSUM_AT = 148;
const CHECKSUM_END = 156;

type TarType = 'file' | 'directory' | 'long-name' | 'pax' | 'pax-global';

export interface TarHeader {
  readonly name: string;
  readonly size: number;
  readonly type: TarType;
}

/** Thrown for an archive that cannot be read. The message completes "Cannot read the archive: …". */
export class TarError extends Error {
  override name = 'TarError';
}

const TYPES = new Map<string, TarType>([
  ['0', 'file'],
  ['\0', 'file'],
  ['7', 'file'],
  ['5', 'directory'],
  ['L', 'long-name'],
  ['x', 'pax'],
  ['g', 'pax-global'],
]);

/** Returns undefined for a block of zeros, which ends the archive. Throws if it is damaged, a link or a device. */
export function parseTarHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (checksum(block) !== parseOctal(block.subarray(CHECKSUM_AT, CHECKSUM_END)))
    throw new TarError('a header is damaged');
  const name = parseName(block);
  const letter = String.fromCharCode(block[156] ?? 0);
  const type = TYPES.get(letter);
  if (type === undefined)
    throw new TarError(`${quoteText(name)} is a link or a device (type ${quoteText(letter)}); expected a file`);
  const size = parseSize(block.subarray(124, 136));
  if (type === 'directory' && size !== 0) throw new TarError(`the directory ${quoteText(name)} has content`);
  return { name, size, type };
}

function parseName(block: Buffer): string {
  const name = decodeText(block.subarray(0, MAX_NAME));
  const isUstar = block.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isUstar ? decodeText(block.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/**
 * Decodes up to the first NUL. Invalid UTF-8 becomes U+FFFD, because a truncated name may be replaced by an extended
 * header.
 */
export function decodeText(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end === -1 ? bytes.length : end);
}

/** Parses octal digits, or GNU's binary format for larger sizes. */
function parseSize(field: Buffer): number {
  const first = field[0] ?? 0;
  if ((first & 0x80) === 0) return parseOctal(field);
  if (first !== 0x80 || field.subarray(1, 4).some((byte) => byte !== 0)) throw new TarError('a size is invalid');
  const size = field.readBigUInt64BE(4);
  if (size > BigInt(Number.MAX_SAFE_INTEGER)) throw new TarError('a size is invalid');
  return Number(size);
}

function parseOctal(field: Buffer): number {
  const text = field
    .toString('latin1')
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]{0,12}$/.test(text)) throw new TarError('a number in a header is invalid');
  return Number.parseInt(text || '0', 8);
}

/** Returns the sum of all bytes, with spaces in place of the checksum itself. */
function checksum(block: Buffer): number {
  let sum = 0x20 * (CHECKSUM_END - CHECKSUM_AT);
  for (let i = 0; i < CHECKSUM_AT; i++) sum += block[i]!;
  for (let i = CHECKSUM_END; i < BLOCK; i++) sum += block[i]!;
  return sum;
}

/** Returns path and size, if present, from records of the form `length key=value\n`. */
export function parsePax(bytes: Buffer): { path?: string; size?: number } {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const blank = bytes.indexOf(0x20, at);
    const digits = blank === -1 ? '' : bytes.toString('latin1', at, blank);
    const end = at + Number(digits);
    const isRecord =
      /^[1-9][0-9]{0,6}$/.test(digits) && end <= bytes.length && end > blank + 1 && bytes[end - 1] === 0x0a;
    const [key = '', ...value] = isRecord ? decodeText(bytes.subarray(blank + 1, end - 1)).split('=') : [];
    if (key === '') throw new TarError('an extended header is damaged');
    if (key.startsWith('GNU.sparse')) throw new TarError('a file is stored in a sparse format, which is not supported');
    records.set(key, value.join('='));
    at = end;
  }
  const [path, size] = [records.get('path'), records.get('size')];
  if (size !== undefined && !(/^[0-9]{1,16}$/.test(size) && Number.isSafeInteger(Number(size)))) {
    throw new TarError('a size is invalid');
  }
  return { ...(path !== undefined && { path }), ...(size !== undefined && { size: Number(size) }) };
}

interface PrintedHeader {
  readonly type: 'file' | 'directory';
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  readonly modifiedSeconds: number;
}

/** Returns the header of an entry of root, preceded by a pax header if name or size do not fit. */
export function printTarHeader({ type, name, size, mode, modifiedSeconds }: PrintedHeader): Buffer {
  const path = type === 'directory' ? `${name}/` : name;
  const split = splitName(path);
  const records: [string, string][] = [];
  if (split === undefined) records.push(['path', path]);
  if (size > MAX_OCTAL_SIZE) records.push(['size', String(size)]);
  const block = (parts: Partial<Block>) =>
    printBlock({ prefix: '', rest: 'file', mode, type: '0', size: 0, modifiedSeconds, ...parts });
  const plain = block({ ...split, type: type === 'directory' ? '5' : '0', size: size > MAX_OCTAL_SIZE ? 0 : size });
  if (records.length === 0) return plain;
  const body = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(''));
  const extended = block({ rest: 'PaxHeader', type: 'x', size: body.length });
  return Buffer.concat([extended, body, padding(body.length), plain]);
}

/** Splits a long name at a slash, so that both parts fit. Returns undefined if there is no such slash. */
function splitName(name: string): { readonly prefix: string; readonly rest: string } | undefined {
  if (Buffer.byteLength(name) <= MAX_NAME) return { prefix: '', rest: name };
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) {
    const [prefix, rest] = [name.slice(0, at), name.slice(at + 1)];
    if (rest !== '' && Buffer.byteLength(rest) <= MAX_NAME && Buffer.byteLength(prefix) <= MAX_PREFIX) {
      return { prefix, rest };
    }
  }
  return undefined;
}

/** Prints a record; its length includes the digits of the length itself. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

interface Block {
  readonly prefix: string;
  readonly rest: string;
  readonly type: string;
  readonly size: number;
  readonly mode: number;
  readonly modifiedSeconds: number;
}

function printBlock({ prefix, rest, type, size, mode, modifiedSeconds }: Block): Buffer {
  const block = Buffer.alloc(BLOCK);
  const number = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1');
  block.write(rest, 0);
  number(mode, 100, 7);
  number(0, 108, 7);
  number(0, 116, 7);
  number(size, 124, 11);
  number(modifiedSeconds, 136, 11);
  block.write(type, 156, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(prefix, 345);
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, CHECKSUM_AT, 'latin1');
  return block;
}

/** Returns the bytes that fill the last block of a file. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
