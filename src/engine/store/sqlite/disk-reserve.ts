/**
 * Keeps room for deletions on a full disk: a file of zeros beside the store, which is removed when a write finds the disk
 * full, and written again when there is space.
 *
 *   enough ──free space below the floor, or a write fails──► scarce: only writes that free space are accepted
 *     ▲                                                        │
 *     └───────── free space for the reserve and the floor ─────┘
 */
import { rmSync } from 'node:fs';
import { open, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

const MIB = 1024 * 1024;
const RESERVE_BYTES = 16 * MIB;
/** Free space below which only deletions are accepted. */
export const FLOOR_BYTES = 16 * MIB;
/** As long as clients wait before they try again. */
const CHECK_MS = 1000;
/** A reserve file in progress. */
const PART = '.part';

interface DiskReserveOptions {
  /** Returns the free bytes of the file system, or undefined if they are not known. */
  freeBytes?(): Promise<number | undefined>;
}

export class DiskReserve {
  readonly #file: string;
  readonly #freeBytes: () => Promise<number | undefined>;
  #isScarce = false;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;

  constructor(file: string, options: DiskReserveOptions = {}) {
    this.#file = file;
    this.#freeBytes = options.freeBytes ?? (() => freeBytesOf(dirname(file)));
  }

  /** True if only writes that free space should be accepted. */
  get isScarce(): boolean {
    return this.#isScarce;
  }

  /** Checks the free space from time to time until `stop`. */
  start(): void {
    this.#timer ??= setInterval(() => void this.check(), CHECK_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#checking;
  }

  /** Gives the reserve to the file system, because a write found it full. */
  release(): void {
    this.#isScarce = true;
    rmSync(this.#file, { force: true });
  }

  /** Compares the free space with the floor, and writes the reserve if it is missing. Calls overlap safely. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined));
    return this.#checking;
  }

  async #check(): Promise<void> {
    const free = await this.#freeBytes();
    if (free === undefined) return;
    const isReserved = (await sizeOf(this.#file)) === RESERVE_BYTES;
    if (free < FLOOR_BYTES) this.#isScarce = true;
    else if (isReserved) this.#isScarce = false;
    else if (free >= FLOOR_BYTES + RESERVE_BYTES) {
      await this.#write().catch(() => {});
      this.#isScarce = (await sizeOf(this.#file)) !== RESERVE_BYTES;
    }
  }

  /** Writes zeros instead of a hole, so that the file occupies its space. */
  async #write(): Promise<void> {
    const part = this.#file + PART;
    try {
      const handle = await open(part, 'w', 0o600);
      try {
        const zeros = Buffer.alloc(MIB);
        for (let written = 0; written < RESERVE_BYTES; written += MIB) await handle.write(zeros);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(part, this.#file);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch {
    return undefined;
  }
}

async function freeBytesOf(directory: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
