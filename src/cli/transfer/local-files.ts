/** Reads and writes files of the user. Files are read in chunks and written atomically. */
import { createReadStream, createWriteStream } from 'node:fs';
import { access, open, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommandError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';

/**
 * Writes a file, which gets its name when it is complete. A private file can be read only by the user. Throws
 * CommandError and leaves no partial file behind.
 */
export async function writeLocalFile(
  path: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { force, isPrivate = false }: { readonly force: boolean; readonly isPrivate?: boolean },
): Promise<void> {
  if (!force && (await exists(path)))
    throw new CommandError(`Cannot write ${path}: it already exists; use --force to overwrite it`);
  const partial = `${path}.part`;
  try {
    if (isPrivate) await rm(partial, { force: true });
    const mode = isPrivate ? 0o600 : 0o666;
    await pipeline(Readable.from(chunks, { objectMode: false }), createWriteStream(partial, { mode }));
    await rename(partial, path);
  } catch (cause) {
    await rm(partial, { force: true });
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot write ${path}: ${errorMessage(cause)}`, { cause });
  }
}

/** Reads a file. Throws CommandError if it is not a file or larger than `maxBytes`. */
export async function readLocalFile(path: string, maxBytes: number): Promise<Buffer> {
  const bytes = await fileSize(path);
  if (bytes > maxBytes) throw new CommandError(`Cannot read ${path}: it has ${bytes} bytes; the limit is ${maxBytes}`);
  const pieces: Buffer[] = [];
  for await (const piece of readChunks(path)) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Returns the size of a file. Throws CommandError if it is not a file. */
export async function fileSize(path: string): Promise<number> {
  try {
    await using file = await open(path, 'r');
    const stats = await file.stat();
    if (!stats.isFile()) throw new CommandError(`Cannot read ${path}: it is not a file`);
    return stats.size;
  } catch (cause) {
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot read ${path}: ${errorMessage(cause)}`, { cause });
  }
}

export function readChunks(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: 256 * 1024 });
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
