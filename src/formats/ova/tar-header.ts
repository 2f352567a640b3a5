/** Parses and prints headers of tar archives: ustar with the extensions of GNU and POSIX (pax). Pure. */
import { FileFormatError, quoteText } from '#formats/findings.ts';

export const BLOCK = 512;
/** The largest number with eleven octal digits. */
const MAX_OCTAL_SIZE = 8 ** 11 - 1;
const MAX_NAME = 100;

export type TarType = 'file' | 'directory' | 'long-name' | 'pax' | 'pax-global';

export interface TarHeader {
  readonly name: string;
  readonly size: number;
  readonly type: TarType;
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
  if (checksum(block) !== parseOctal(block.subarray(148, 156))) throw tarError('a header is damaged');
  const name = parseName(block);
  const letter = String.fromCharCode(block[156] ?? 0);
  const type = TYPES.get(letter);
  if (type === undefined)
    throw tarError(`${quoteText(name)} is a link or a device (type ${quoteText(letter)}); expected a file`);
  const size = parseSize(block.subarray(124, 136));
  if (type === 'directory' && size !== 0) throw tarError(`the directory ${quoteText(name)} has content`);
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
  if (first !== 0x80 || field.subarray(1, 4).some((byte) => byte !== 0)) throw tarError('a size is invalid');
  const size = field.readBigUInt64BE(4);
  if (size > BigInt(Number.MAX_SAFE_INTEGER)) throw tarError('a size is invalid');
  return Number(size);
}

function parseOctal(field: Buffer): number {
  const text = field
    .toString('latin1')
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]{0,12}$/.test(text)) throw tarError('a number in a header is invalid');
  return Number.parseInt(text || '0', 8);
}

/** Returns the sum of all bytes, with spaces in place of the checksum itself. */
function checksum(block: Buffer): number {
  let sum = 0;
  for (const [i, byte] of block.entries()) sum += i >= 148 && i < 156 ? 0x20 : byte;
  return sum;
}

export function tarError(problem: string): FileFormatError {
  return new FileFormatError('read OVA', [problem]);
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
    if (key === '') throw tarError('an extended header is damaged');
    if (key.startsWith('GNU.sparse')) throw tarError('a file is stored in a sparse format, which is not supported');
    records.set(key, value.join('='));
    at = end;
  }
  const [path, size] = [records.get('path'), records.get('size')];
  if (size !== undefined && !(/^[0-9]{1,16}$/.test(size) && Number.isSafeInteger(Number(size)))) {
    throw tarError('a size is invalid');
  }
  return { ...(path !== undefined && { path }), ...(size !== undefined && { size: Number(size) }) };
}

/** Returns the header of a file, preceded by a pax header if name or size do not fit. */
export function printTarHeader(name: string, size: number, modifiedSeconds: number): Buffer {
  const records: [string, string][] = [];
  if (Buffer.byteLength(name) > MAX_NAME) records.push(['path', name]);
  if (size > MAX_OCTAL_SIZE) records.push(['size', String(size)]);
  const short = Buffer.from(name.length < Buffer.byteLength(name) && records.length > 0 ? 'file' : name).subarray(
    0,
    MAX_NAME,
  );
  const plain = printHeader(short, size > MAX_OCTAL_SIZE ? 0 : size, '0', modifiedSeconds);
  if (records.length === 0) return plain;
  const body = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(''));
  return Buffer.concat([
    printHeader(Buffer.from('PaxHeader'), body.length, 'x', modifiedSeconds),
    body,
    padding(body.length),
    plain,
  ]);
}

/** Prints a record; its length includes the digits of the length itself. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function printHeader(name: Buffer, size: number, type: string, modifiedSeconds: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const number = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at);
  name.copy(block);
  number(0o644, 100, 7);
  number(0, 108, 7);
  number(0, 116, 7);
  number(size, 124, 11);
  number(modifiedSeconds, 136, 11);
  block.write(type, 156);
  block.write('ustar\x0000', 257, 'latin1');
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** Returns the bytes that fill the last block of a file. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
