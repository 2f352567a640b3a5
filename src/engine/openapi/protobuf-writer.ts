/** Writes protobuf wire format: just what the OpenAPI v2 document needs. Zero values are left out, as proto3 has it. */

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

  /** Repeated elements are written even where they are empty. */
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
    // The length stands before the content and has no fixed size: most messages are short enough for the one byte
    // left for it, longer ones make room.
    const size = this.#length - lengthAt - 1;
    const more = varintWidth(size) - 1;
    // Now, because growing keeps only what stands before #length.
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

  /** Of a non-negative whole number below 2^32. */
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
