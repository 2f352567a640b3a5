/**
 * Reads a tar archive as a stream: each file with its content, once and in order. Only the current piece is kept in
 * memory. Unsafe names, links and devices are refused.
 */
import { quoteText } from '#lib/text/quote-text.ts';
import { checkPath } from '#lib/files/safe-path.ts';
import { BLOCK, decodeText, padding, parsePax, parseTarHeader, TarError, type TarHeader } from '#lib/tar/tar-header.ts';

export interface TarLimits {
  readonly entries: number;
  readonly fileBytes: number;
  readonly totalBytes: number;
}

export const TAR_LIMITS: TarLimits = { entries: 1024, fileBytes: 16 * 1024 ** 4, totalBytes: 64 * 1024 ** 4 };
const MAX_EXTENDED = 64 * 1024;

export interface TarFile {
  readonly name: string;
  readonly size: number;
  /** Can be read once, and only until the next file is requested; the rest is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** Throws a TarError if the archive is damaged or hostile, also while content is read. */
export async function* readTar(
  chunks: AsyncIterable<Uint8Array>,
  limits: TarLimits = TAR_LIMITS,
): AsyncGenerator<TarFile, void, undefined> {
  const source = new ByteSource(chunks);
  const names = new Set<string>();
  let total = 0;
  try {
    for (let entries = 0; ; entries++) {
      if (entries > limits.entries) throw new TarError(`there are more than ${limits.entries} files`);
      const header = await readHeader(source);
      if (header === undefined) return;
      const { name, size, type } = header;
      const problem = name.includes('\u{FFFD}') ? 'is not encoded in UTF-8' : checkPath(name);
      if (problem !== undefined) throw new TarError(`the name ${quoteText(name)} ${problem}`);
      if (type === 'directory') continue;
      if (names.has(name)) throw new TarError(`${quoteText(name)} appears twice`);
      names.add(name);
      total += size;
      if (size > limits.fileBytes)
        throw new TarError(`${quoteText(name)} has ${size} bytes, more than ${limits.fileBytes}`);
      if (total > limits.totalBytes) throw new TarError(`it has more than ${limits.totalBytes} bytes`);
      const content = source.stream(size);
      yield { name, size, content };
      for await (const skipped of content) void skipped;
      await source.readExactly(padding(size).length);
    }
  } finally {
    await source.close();
  }
}

/** Reads the content into memory. Throws if it is larger than `maxBytes`. */
export async function readWhole({ name, size, content }: TarFile, maxBytes: number): Promise<Buffer> {
  if (size > maxBytes) throw new TarError(`${quoteText(name)} has ${size} bytes, more than ${maxBytes}`);
  const pieces = await Array.fromAsync(content);
  return pieces.length === 1
    ? Buffer.from(pieces[0]!.buffer, pieces[0]!.byteOffset, size)
    : Buffer.concat(pieces, size);
}

/** Reads the header of the next file or directory, including a long name or size from extended headers before it. */
async function readHeader(source: ByteSource): Promise<TarHeader | undefined> {
  let overrides: { path?: string; size?: number } = {};
  for (let extended = 0; extended < 8; extended++) {
    const header = parseTarHeader(await source.readExactly(BLOCK));
    if (header === undefined || header.type === 'file' || header.type === 'directory') {
      if (header === undefined) return undefined;
      const name = (overrides.path ?? header.name).replace(/^(?:\.\/)+/, '').replace(/\/$/, '');
      // The entry of the archived directory itself.
      if (header.type === 'directory' && (name === '' || name === '.')) {
        overrides = {};
        continue;
      }
      return { ...header, name, size: overrides.size ?? header.size };
    }
    if (header.size > MAX_EXTENDED) throw new TarError('an extended header is too long');
    const body = await source.readExactly(header.size);
    await source.readExactly(padding(header.size).length);
    if (header.type === 'long-name') overrides = { ...overrides, path: decodeText(body) };
    if (header.type === 'pax') overrides = { ...overrides, ...parsePax(body) };
  }
  throw new TarError('there are too many headers in a row');
}

/** Reads a stream of chunks in pieces of requested sizes. Throws if the stream ends too early. */
class ByteSource {
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
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
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
      if (done === true) throw new TarError('it ends too early');
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const piece = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }
}
