/**
 * Paths as QEMU (and swtpm) is to be told them. Below the directory of the domain they are relative to its working directory. All
 * others go through a descriptor of their directory that QEMU inherits: its user need not be able to pass the private
 * directories above, only to open the file itself.
 */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { DomainDir } from './domain-dir.ts';

const FIRST_FD = 3;

export class GuestPaths {
  readonly #dir: DomainDir;
  readonly #inherit: boolean;
  readonly #directories: string[] = [];
  #handles: FileHandle[] = [];

  /** Without `inherit` QEMU runs as we do and gets those paths as they are. */
  constructor(dir: DomainDir, { inherit }: { inherit: boolean }) {
    this.#dir = dir;
    this.#inherit = inherit;
  }

  of(absolute: string): string {
    if (absolute.startsWith(`${this.#dir.path}/`)) return relative(this.#dir.run, absolute);
    if (!this.#inherit) return absolute;
    const directory = dirname(absolute);
    let index = this.#directories.indexOf(directory);
    if (index === -1) index = this.#directories.push(directory) - 1;
    return join('/proc/self/fd', String(FIRST_FD + index), basename(absolute));
  }

  /** Opens the directories of all paths that were asked for, in the order of their numbers. */
  async open(): Promise<number[]> {
    for (const path of this.#directories) {
      this.#handles.push(await open(path, constants.O_RDONLY | constants.O_DIRECTORY));
    }
    return this.#handles.map(({ fd }) => fd);
  }

  async close(): Promise<void> {
    const handles = this.#handles;
    this.#handles = [];
    for (const handle of handles) await handle.close();
  }
}
