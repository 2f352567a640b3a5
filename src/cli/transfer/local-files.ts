/** Reads and writes files of the user. Files are read in chunks and written atomically. */
import { createReadStream, createWriteStream } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { lstat, open, realpath, rename, rm, statfs, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommandError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import { bytesText } from '#lib/terminal/progress-text.ts';

const CHUNK_BYTES = 256 * 1024;
const PRIVATE_FILE = 0o600;

/**
 * Writes a file, which gets its name when it is complete. It can be read only by the user, because exports contain the
 * disks of guests, their keys and passwords. Throws CommandError and leaves no partial file behind.
 */
export async function writeLocalFile(
  path: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { force }: { readonly force: boolean },
): Promise<void> {
  await refuseExisting(path, force);
  const partial = `${path}.part`;
  try {
    await rm(partial, { force: true });
    // A new file: one that exists, or a link to one, might belong to another user.
    const target = createWriteStream(partial, { mode: PRIVATE_FILE, flags: 'wx' });
    await pipeline(Readable.from(chunks, { objectMode: false }), target);
    await rename(partial, path);
  } catch (cause) {
    await rm(partial, { force: true });
    throw cause instanceof CommandError
      ? cause
      : new CommandError(`Cannot write ${path}: ${errorMessage(cause)}`, { cause });
  }
}

/** Throws CommandError if the file exists and must not be overwritten. */
export async function refuseExisting(path: string, force: boolean): Promise<void> {
  if (!force && (await hasLocalFile(path)))
    throw new CommandError(`Cannot write ${path}: it already exists; use --force to overwrite it`);
}

/** Throws CommandError if the file system of the file has less free space. */
export async function requireSpace(path: string, bytes: number): Promise<void> {
  const directory = dirname(path);
  const { bavail, bsize } = await statfs(directory).catch((cause: unknown) => {
    throw new CommandError(`Cannot write ${path}: ${errorMessage(cause)}`, { cause });
  });
  if (bavail * bsize >= bytes) return;
  throw new CommandError(
    `Cannot write ${path}: it needs up to ${bytesText(bytes)}, and the file system of ${directory} has ${bytesText(bavail * bsize)} left; free space, or choose another directory`,
  );
}

/** A temporary file. It has no name, so that nothing remains of it however the program ends. */
export class SpoolFile {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Creates the file on the file system of `path`. Throws CommandError. */
  static async createBeside(path: string): Promise<SpoolFile> {
    const name = `${path}.spool-${randomUUID()}`;
    try {
      const file = await open(name, 'wx+', PRIVATE_FILE);
      await rm(name);
      return new SpoolFile(file);
    } catch (cause) {
      throw new CommandError(`Cannot write ${name}: ${errorMessage(cause)}`, { cause });
    }
  }

  async write(bytes: Uint8Array, at: number): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      const { bytesWritten } = await this.#file.write(bytes, written, bytes.length - written, at + written);
      written += bytesWritten;
    }
  }

  /** Throws if the file has fewer bytes. */
  async read(length: number, at: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(length), 0, length, at);
    if (bytesRead < length) throw new Error(`Cannot read ${length} bytes at ${at}: the file ends before`);
    return buffer;
  }

  async *chunks(size: number): AsyncGenerator<Buffer> {
    for (let at = 0; at < size; at += CHUNK_BYTES) yield await this.read(Math.min(CHUNK_BYTES, size - at), at);
  }

  /** Closes the file and releases its space. */
  async close(): Promise<void> {
    await this.#file.close();
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

/**
 * Returns the path of a file that another file names, in the same directory or below. Throws CommandError if it is, or is
 * reached through, a symbolic link: a file from elsewhere could name any file of the user in this way.
 */
export async function pathBeside(path: string, name: string): Promise<string> {
  const directory = await realpath(dirname(path));
  const wanted = join(directory, name);
  const found = await realpath(wanted).catch((cause: unknown) => {
    throw new CommandError(`Cannot read ${wanted}: ${errorMessage(cause)}`, { cause });
  });
  if (found === wanted) return wanted;
  throw new CommandError(
    `Cannot read ${wanted}: it is a symbolic link to ${found}; copy the file into the directory of ${path}`,
  );
}

export function readChunks(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: CHUNK_BYTES });
}

/** Reports whether the path exists, be it a broken link. */
export async function hasLocalFile(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}
