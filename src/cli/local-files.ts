/** Files of the user: read in chunks, and written whole or not at all. */
import { createReadStream, createWriteStream } from 'node:fs';
import { access, open, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommandError } from '#cli/flags.ts';
import { messageOf } from '#cli/message-of.ts';

/** Gets its name when all of it is there. Throws CommandError; nothing of it is left then. */
export async function writeWhole(
  path: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { force }: { readonly force: boolean },
): Promise<void> {
  if (!force && (await isThere(path)))
    throw new CommandError(`Cannot write ${path}: it already exists; use --force to overwrite it`);
  const partial = `${path}.part`;
  try {
    await pipeline(Readable.from(chunks, { objectMode: false }), createWriteStream(partial));
    await rename(partial, path);
  } catch (cause) {
    await rm(partial, { force: true });
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot write ${path}: ${messageOf(cause)}`, { cause });
  }
}

/** Throws CommandError for what is no file, or longer. */
export async function readWhole(path: string, maxBytes: number): Promise<Buffer> {
  const bytes = await fileSize(path);
  if (bytes > maxBytes) throw new CommandError(`Cannot read ${path}: it has ${bytes} bytes; the limit is ${maxBytes}`);
  const pieces: Buffer[] = [];
  for await (const piece of readChunks(path)) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Throws CommandError for what is no file. */
export async function fileSize(path: string): Promise<number> {
  try {
    await using file = await open(path, 'r');
    const stats = await file.stat();
    if (!stats.isFile()) throw new CommandError(`Cannot read ${path}: it is not a file`);
    return stats.size;
  } catch (cause) {
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot read ${path}: ${messageOf(cause)}`, { cause });
  }
}

export function readChunks(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: 256 * 1024 });
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
