/**
 * The last of what a serial console said, on disk: two files of half the size each. The newer one grows; when it is
 * full it takes the place of the older one. One writer.
 */
import { open, readFile, rename, type FileHandle } from 'node:fs/promises';
import { CONSOLE_LOG_BYTES } from '../hypervisor.ts';

const HALF_BYTES = CONSOLE_LOG_BYTES / 2;
const PRIVATE_FILE = 0o600;

export class ConsoleLog {
  readonly #path: string;
  readonly #halfBytes: number;
  #file: FileHandle | undefined;
  #bytes = 0;

  constructor(path: string, { halfBytes = HALF_BYTES } = {}) {
    this.#path = path;
    this.#halfBytes = halfBytes;
  }

  /** Goes on where an earlier agent stopped. */
  async append(chunk: Buffer): Promise<void> {
    for (let rest = chunk; rest.length > 0;) {
      const file = await this.#open();
      const part = rest.subarray(0, Math.max(1, this.#halfBytes - this.#bytes));
      await file.appendFile(part);
      this.#bytes += part.length;
      rest = rest.subarray(part.length);
      if (this.#bytes >= this.#halfBytes) await this.#turn();
    }
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #open(): Promise<FileHandle> {
    if (this.#file === undefined) {
      this.#file = await open(this.#path, 'a', PRIVATE_FILE);
      this.#bytes = (await this.#file.stat()).size;
    }
    return this.#file;
  }

  async #turn(): Promise<void> {
    await this.close();
    await rename(this.#path, olderPath(this.#path));
  }
}

/** Also while somebody appends, and after the guest is gone. Empty where it never said anything. */
export async function readConsoleLogFile(path: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const name of [olderPath(path), path]) {
    const part = await readFile(name).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (part !== undefined) parts.push(part);
  }
  return Buffer.concat(parts).subarray(-CONSOLE_LOG_BYTES);
}

function olderPath(path: string): string {
  return `${path}.1`;
}
