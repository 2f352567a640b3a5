/** Writes the protobuf wire format, as far as the OpenAPI v2 document needs it. Omits zero values, as proto3 does. */

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const MAX_VARINT_BYTES = 5;

export class ProtobufWriter {
  #bytes = Buffer.allocUnsafe(64 * 1024);
  #length = 0;

  string(field: number, text: string | undefined): void {
    if (text === undefined || text === '') return;
    this.#element(field, text);
  }

  /** Writes repeated elements, including empty ones. */
  strings(field: number, texts: readonly string[] | undefined): void {
    for (const text of texts ?? []) this.#element(field, text);
  }

  bool(field: number, value: boolean | undefined): void {
    if (value !== true) return;
    this.#tag(field, VARINT);
    this.#varint(1);
  }

  message(field: number, write: (writer: ProtobufWriter) => void): void {
    this.#tag(field, LENGTH_DELIMITED);
    this.#reserve(1);
    const lengthAt = this.#length++;
    write(this);
    // The length precedes the content and has a variable width. One byte is reserved, which is enough for most
    // messages; longer messages move their content.
    const size = this.#length - lengthAt - 1;
    const more = varintWidth(size) - 1;
    // Must run before the move, because growing preserves only the bytes before #length.
    this.#reserve(MAX_VARINT_BYTES);
    if (more > 0) this.#bytes.copyWithin(lengthAt + 1 + more, lengthAt + 1, this.#length);
    this.#length = lengthAt;
    this.#varint(size);
    this.#length += size;
  }

  finish(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  #element(field: number, text: string): void {
    this.#tag(field, LENGTH_DELIMITED);
    const size = Buffer.byteLength(text);
    this.#varint(size);
    this.#reserve(size);
    this.#length += this.#bytes.write(text, this.#length);
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field * 8 + wireType);
  }

  /** Writes a non-negative integer below 2^32. */
  #varint(value: number): void {
    this.#reserve(MAX_VARINT_BYTES);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  #reserve(extra: number): void {
    const needed = this.#length + extra;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

function varintWidth(value: number): number {
  let width = 1;
  for (let rest = value; rest >= 0x80; rest >>>= 7) width++;
  return width;
}
