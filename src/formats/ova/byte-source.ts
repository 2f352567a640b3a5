/** Reads a stream of chunks in pieces of requested sizes. Throws if the stream ends too early. */
import { tarError } from '#formats/ova/tar-header.ts';

export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Reads `size` bytes into memory. For small pieces. */
  async readExactly(size: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let missing = size; missing > 0;) {
      const piece = await this.#some(missing);
      pieces.push(piece);
      missing -= piece.length;
    }
    return pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces, size);
  }

  /** Streams the next `size` bytes. A second iteration continues where the first one stopped. */
  stream(size: number): AsyncIterable<Uint8Array> {
    let left = size;
    const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
      if (left === 0) return { done: true, value: undefined };
      const piece = await this.#some(left);
      left -= piece.length;
      return { done: false, value: piece };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #some(max: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) throw tarError('it ends too early');
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const piece = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }
}
