/**
 * A log file that only its owner may read, rotated at a maximum size:
 *
 *   <dir>/audit.log            the current file
 *   <dir>/audit-000042.log     previous files: higher numbers are newer
 *
 * Numbers instead of times: clocks can go backwards, and the order must be clear.
 */
import { constants } from 'node:fs';
import { open, readdir, rename, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { ensurePrivateDir } from '#lib/files/private-file.ts';

interface RotatedFileOptions {
  readonly dir: string;
  readonly maxBytes: number;
  /** Number of files besides the current one. */
  readonly maxRotated: number;
}

const CURRENT = 'audit.log';
const ROTATED = /^audit-(\d{6,15})\.log$/;
const PRIVATE_FILE = 0o600;
const FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
const NEWLINE = Buffer.from('\n');

/** For one caller, one call at a time. After a failure the next call starts again, including the directory. */
export class RotatedFile {
  readonly #options: RotatedFileOptions;
  #open: { readonly handle: FileHandle; bytes: number } | undefined;

  constructor(options: RotatedFileOptions) {
    this.#options = options;
  }

  /**
   * Appends all of the bytes, or nothing if it rejects (unless even the rollback fails). The bytes end with a newline.
   */
  async append(bytes: Buffer): Promise<void> {
    let file = (this.#open ??= await this.#begin());
    if (file.bytes > 0 && file.bytes + bytes.length > this.#options.maxBytes) {
      await this.#rotate();
      file = this.#open = await this.#begin();
    }
    try {
      await file.handle.writeFile(bytes);
      file.bytes += bytes.length;
    } catch (error) {
      // The data is written again later; even on a full disk a file can be truncated.
      await file.handle.truncate(file.bytes).catch(() => {});
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    const file = this.#open;
    this.#open = undefined;
    await file?.handle.close().catch(() => {});
  }

  async #begin(): Promise<{ handle: FileHandle; bytes: number }> {
    const { dir } = this.#options;
    await ensurePrivateDir(dir);
    const handle = await open(join(dir, CURRENT), FLAGS, PRIVATE_FILE);
    try {
      const { size, mode } = await handle.stat();
      if ((mode & 0o777) !== PRIVATE_FILE) await handle.chmod(PRIVATE_FILE);
      return { handle, bytes: size + (await endLine(handle, size)) };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #rotate(): Promise<void> {
    const { dir, maxRotated } = this.#options;
    await this.close();
    const known = await rotatedIn(dir);
    const name = `audit-${String((known.at(-1)?.number ?? 0) + 1).padStart(6, '0')}.log`;
    await rename(join(dir, CURRENT), join(dir, name));
    const surplus = known.slice(0, Math.max(0, known.length + 1 - maxRotated));
    for (const { name: oldest } of surplus) await rm(join(dir, oldest), { force: true });
  }
}

/** Terminates an incomplete line of a killed process. Returns the number of bytes added. */
async function endLine(handle: FileHandle, size: number): Promise<number> {
  if (size === 0) return 0;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] === NEWLINE[0]) return 0;
  await handle.writeFile(NEWLINE);
  return NEWLINE.length;
}

/** Returns the rotated files, oldest first. */
async function rotatedIn(dir: string): Promise<{ name: string; number: number }[]> {
  const found = (await readdir(dir)).flatMap((name) => {
    const [, digits] = ROTATED.exec(name) ?? [];
    return digits === undefined ? [] : [{ name, number: Number(digits) }];
  });
  return found.toSorted((a, b) => a.number - b.number);
}
