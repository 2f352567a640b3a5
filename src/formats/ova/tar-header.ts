/** One header of a tar archive: ustar with the additions of GNU and POSIX (pax). Bytes in, values out, and back. Pure. */
import { FormatError, quoted } from '#formats/faults.ts';

export const BLOCK = 512;
/** What eleven octal digits hold. */
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

/** Undefined for a block of zeros: the end. Throws for damage, and for what has no place in an OVA: links, devices. */
export function parseTarHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (checksum(block) !== octal(block.subarray(148, 156))) throw tarFault('a header is damaged');
  const name = nameIn(block);
  const letter = String.fromCharCode(block[156] ?? 0);
  const type = TYPES.get(letter);
  if (type === undefined)
    throw tarFault(`${quoted(name)} is no plain file (type ${quoted(letter)}), but a link or a device`);
  const size = sizeIn(block.subarray(124, 136));
  if (type === 'directory' && size !== 0) throw tarFault(`the directory ${quoted(name)} has content`);
  return { name, size, type };
}

function nameIn(block: Buffer): string {
  const name = textIn(block.subarray(0, MAX_NAME));
  const isUstar = block.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isUstar ? textIn(block.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Up to the first NUL. What is not UTF-8 shows as U+FFFD: a name that was cut off may be followed by the whole one. */
export function textIn(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end === -1 ? bytes.length : end);
}

/** Octal digits, or GNU's binary for what is larger. */
function sizeIn(field: Buffer): number {
  const first = field[0] ?? 0;
  if ((first & 0x80) === 0) return octal(field);
  if (first !== 0x80 || field.subarray(1, 4).some((byte) => byte !== 0)) throw tarFault('a size is not possible');
  const size = field.readBigUInt64BE(4);
  if (size > BigInt(Number.MAX_SAFE_INTEGER)) throw tarFault('a size is not possible');
  return Number(size);
}

function octal(field: Buffer): number {
  const text = field
    .toString('latin1')
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]{0,12}$/.test(text)) throw tarFault('a number in a header is none');
  return Number.parseInt(text || '0', 8);
}

/** The sum of all bytes, with blanks in place of the sum itself. */
function checksum(block: Buffer): number {
  let sum = 0;
  for (const [i, byte] of block.entries()) sum += i >= 148 && i < 156 ? 0x20 : byte;
  return sum;
}

export function tarFault(problem: string): FormatError {
  return new FormatError('read OVA', [problem]);
}

/** Path and size, where they are said: records of the form `length key=value\n`. */
export function parsePax(bytes: Buffer): { path?: string; size?: number } {
  const said = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const blank = bytes.indexOf(0x20, at);
    const digits = blank === -1 ? '' : bytes.toString('latin1', at, blank);
    const end = at + Number(digits);
    const isRecord =
      /^[1-9][0-9]{0,6}$/.test(digits) && end <= bytes.length && end > blank + 1 && bytes[end - 1] === 0x0a;
    const [key = '', ...value] = isRecord ? textIn(bytes.subarray(blank + 1, end - 1)).split('=') : [];
    if (key === '') throw tarFault('an extended header is damaged');
    if (key.startsWith('GNU.sparse')) throw tarFault('a file is stored with holes, which we do not read');
    said.set(key, value.join('='));
    at = end;
  }
  const [path, size] = [said.get('path'), said.get('size')];
  if (size !== undefined && !(/^[0-9]{1,16}$/.test(size) && Number.isSafeInteger(Number(size)))) {
    throw tarFault('a size is not possible');
  }
  return { ...(path !== undefined && { path }), ...(size !== undefined && { size: Number(size) }) };
}

/** A file's header, with a pax header before it where name or size do not fit. */
export function printTarHeader(name: string, size: number, modifiedSeconds: number): Buffer {
  const records: [string, string][] = [];
  if (Buffer.byteLength(name) > MAX_NAME) records.push(['path', name]);
  if (size > MAX_OCTAL_SIZE) records.push(['size', String(size)]);
  const short = Buffer.from(name.length < Buffer.byteLength(name) && records.length > 0 ? 'file' : name).subarray(
    0,
    MAX_NAME,
  );
  const plain = header(short, size > MAX_OCTAL_SIZE ? 0 : size, '0', modifiedSeconds);
  if (records.length === 0) return plain;
  const body = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(''));
  return Buffer.concat([
    header(Buffer.from('PaxHeader'), body.length, 'x', modifiedSeconds),
    body,
    padding(body.length),
    plain,
  ]);
}

/** The length counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function header(name: Buffer, size: number, type: string, modifiedSeconds: number): Buffer {
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

/** What fills the last block of a content. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
