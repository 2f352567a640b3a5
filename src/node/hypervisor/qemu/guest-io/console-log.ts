/**
 * The end of a serial console's output, on disk in two files of half the size each. The newer file grows; when it is
 * full, it replaces the older one. One writer.
 */
import { open, readFile, rename, type FileHandle } from 'node:fs/promises';
import { CONSOLE_LOG_BYTES } from '#node/hypervisor/hypervisor.ts';

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

  /** Appends after the output that an earlier node agent wrote. */
  async append(chunk: Buffer): Promise<void> {
    for (let rest = chunk; rest.length > 0;) {
      const file = await this.#open();
      const part = rest.subarray(0, Math.max(1, this.#halfBytes - this.#bytes));
      await file.appendFile(part);
      this.#bytes += part.length;
      rest = rest.subarray(part.length);
      if (this.#bytes >= this.#halfBytes) await this.#rotate();
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

  async #rotate(): Promise<void> {
    await this.close();
    await rename(this.#path, olderPath(this.#path));
  }
}

/**
 * Reads the log, also during an append and after the guest has ended. Returns an empty buffer if there is no output.
 */
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
