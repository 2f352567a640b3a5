/** Writes a tar archive as a stream. Equal entries give equal bytes; all of them belong to root. */
import { quoteText } from '#lib/text/quote-text.ts';
import { checkPath } from '#lib/files/safe-path.ts';
import { BLOCK, padding, printTarHeader } from '#lib/tar/tar-header.ts';

export type TarEntry = TarDirectory | TarContent;

interface TarDirectory {
  readonly type: 'directory';
  /** Without a slash at the end. */
  readonly name: string;
  /** Default: 0755. */
  readonly mode?: number;
}

export interface TarContent {
  readonly type?: 'file';
  readonly name: string;
  /** Default: 0644. */
  readonly mode?: number;
  readonly size: number;
  /** Exactly `size` bytes. */
  readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

interface TarOptions {
  /** Seconds since 1970, for all entries. */
  readonly modifiedSeconds?: number;
}

/**
 * The next entry is requested when the previous one was written. Throws if a file does not have its size or its name is
 * unsafe; the archive is then unusable.
 */
export async function* writeTar(
  entries: AsyncIterable<TarEntry> | Iterable<TarEntry>,
  { modifiedSeconds = 0 }: TarOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const entry of entries) {
    const { name } = entry;
    const problem = checkPath(name);
    if (problem !== undefined) throw new TypeError(`Cannot archive ${quoteText(name)}: the name ${problem}`);
    if (entry.type === 'directory') {
      yield printTarHeader({ type: 'directory', name, mode: entry.mode ?? 0o755, size: 0, modifiedSeconds });
    } else {
      yield printTarHeader({ type: 'file', name, mode: entry.mode ?? 0o644, size: entry.size, modifiedSeconds });
      yield* checkSize(entry);
      yield padding(entry.size);
    }
  }
  yield Buffer.alloc(2 * BLOCK);
}

async function* checkSize({ name, size, content }: TarContent): AsyncGenerator<Uint8Array> {
  let written = 0;
  for await (const piece of content) {
    written += piece.length;
    if (written > size) break;
    yield piece;
  }
  if (written === size) return;
  const compared = written > size ? 'more' : 'fewer';
  throw new RangeError(`Cannot archive ${quoteText(name)}: it has ${compared} than ${size} bytes`);
}

/** Returns an entry whose content is in memory. */
export function tarFile(name: string, content: string | Buffer): TarContent {
  // A Buffer is not copied: it may be a whole backup.
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { name, size: bytes.length, content: [bytes] };
}
