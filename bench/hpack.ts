/**
 * The part of HPACK (RFC 7541) that a load generator needs: request headers that are cheap to write, and the status of
 * a response. Like a real client it lets the server use its table; unlike one it reads nothing else.
 */

const STATIC_ENTRIES = 61;
const AUTHORITY = 1;
const METHOD_GET = 0x82;
const METHOD_POST = 0x83;
const SCHEME_HTTPS = 0x87;
const INDEXED = 0x80;
const LITERAL_INDEXED = 0x40;

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
export type Fields = Readonly<Record<string, string>>;

/** The headers of one connection. Its authority and fields enter the server's table with the first request. */
export class RequestEncoder {
  readonly #first: { head: Buffer; tail: Buffer };
  readonly #later: { head: Buffer; tail: Buffer };
  #sent = false;

  constructor(authority: string, fields: Fields) {
    const names = Object.entries(fields);
    const literals = names.map(([name, value]) => Buffer.concat([byte(LITERAL_INDEXED), text(name), text(value)]));
    this.#first = {
      head: Buffer.concat([byte(LITERAL_INDEXED | AUTHORITY), text(authority)]),
      tail: Buffer.concat(literals),
    };
    // The newest entry of the table has the lowest index; the authority was inserted first.
    const newest = STATIC_ENTRIES + 1;
    this.#later = {
      head: byte(INDEXED | (newest + names.length)),
      tail: Buffer.from(names.map((_, at) => INDEXED | (newest + names.length - 1 - at))),
    };
  }

  /** Must be called in the order in which the blocks are sent. */
  encode(method: Method, path: string, contentLength: number | undefined): Buffer {
    const { head, tail } = this.#sent ? this.#later : this.#first;
    this.#sent = true;
    return Buffer.concat([METHODS[method], head, byte(0x04), text(path), tail, lengthField(contentLength)]);
  }
}

const METHODS: Record<Method, Buffer> = {
  GET: Buffer.from([METHOD_GET, SCHEME_HTTPS]),
  POST: Buffer.from([METHOD_POST, SCHEME_HTTPS]),
  PATCH: otherMethod('PATCH'),
  PUT: otherMethod('PUT'),
  DELETE: otherMethod('DELETE'),
};

function otherMethod(method: string): Buffer {
  return Buffer.concat([byte(0x02), text(method), byte(SCHEME_HTTPS)]);
}

const NO_BYTES = Buffer.alloc(0);
const lengthFields = new Map<number, Buffer>();

/** Encodes `content-length`, which is entry 28. Cached, because few lengths occur. */
function lengthField(length: number | undefined): Buffer {
  if (length === undefined) return NO_BYTES;
  let field = lengthFields.get(length);
  if (field === undefined) {
    field = Buffer.concat([Buffer.from([0x0f, 0x0d]), text(String(length))]);
    lengthFields.set(length, field);
  }
  return field;
}

function byte(value: number): Buffer {
  return Buffer.from([value]);
}

/** A string literal without Huffman code. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(bytes.length, 7), bytes]);
}

function integer(value: number, prefixBits: number): Buffer {
  const max = 2 ** prefixBits - 1;
  if (value < max) return byte(value);
  const bytes = [max];
  for (value -= max; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  bytes.push(value);
  return Buffer.from(bytes);
}

/** Static entries 8 to 14. */
const STATIC_STATUS: Readonly<Record<number, number>> = { 8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500 };
const MAX_TABLE_ENTRIES = 4096;

/** Reads `:status`. Of the table it keeps only the entries that are statuses, because it needs no others. */
export class StatusReader {
  readonly #statuses = new Map<number, number>();
  #inserted = 0;
  #at = 0;

  /** Returns 0 for a block without a status (trailers). */
  read(block: Buffer): number {
    let status = 0;
    this.#at = 0;
    while (this.#at < block.length) {
      const first = block[this.#at]!;
      if (first >= 0x80) status = this.#statusAt(this.#integer(block, 7)) || status;
      else if (first >= 0x40) status = this.#literal(block, 6, true) || status;
      else if (first >= 0x20) this.#integer(block, 5);
      else status = this.#literal(block, 4, false) || status;
    }
    return status;
  }

  #literal(block: Buffer, prefixBits: number, isInserted: boolean): number {
    const name = this.#integer(block, prefixBits);
    if (name === 0) this.#string(block);
    const isStatus = name !== 0 && this.#statusAt(name) !== 0;
    const value = this.#string(block);
    const status = isStatus ? parseDigits(value.bytes, value.huffman) : 0;
    if (isInserted) {
      this.#inserted++;
      if (status !== 0) this.#statuses.set(this.#inserted, status);
      this.#statuses.delete(this.#inserted - MAX_TABLE_ENTRIES);
    }
    return status;
  }

  #statusAt(index: number): number {
    if (index <= STATIC_ENTRIES) return STATIC_STATUS[index] ?? 0;
    return this.#statuses.get(this.#inserted - (index - STATIC_ENTRIES - 1)) ?? 0;
  }

  #string(block: Buffer): { bytes: Buffer; huffman: boolean } {
    const huffman = block[this.#at]! >= 0x80;
    const length = this.#integer(block, 7);
    const bytes = block.subarray(this.#at, this.#at + length);
    this.#at += length;
    return { bytes, huffman };
  }

  #integer(block: Buffer, prefixBits: number): number {
    const max = 2 ** prefixBits - 1;
    let value = block[this.#at++]! & max;
    if (value < max) return value;
    for (let scale = 1; ; scale *= 128) {
      const next = block[this.#at++]!;
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
  }
}

/** Parses three digits, plain or in HPACK's Huffman code: 0 to 2 have five bits, 3 to 9 have six. */
function parseDigits(bytes: Buffer, huffman: boolean): number {
  if (!huffman) return Number(bytes.toString('latin1'));
  let bits = '';
  for (const value of bytes) bits += value.toString(2).padStart(8, '0');
  let number = 0;
  for (let digit = 0, at = 0; digit < 3; digit++) {
    const short = Number.parseInt(bits.slice(at, at + 5), 2);
    if (short <= 2) {
      number = number * 10 + short;
      at += 5;
    } else {
      number = number * 10 + Number.parseInt(bits.slice(at, at + 6), 2) - 0b011001 + 3;
      at += 6;
    }
  }
  return number;
}
