/**
 * Paths for QEMU and swtpm. Paths below the domain directory are relative to their working directory. All others go
 * through a descriptor of the file's directory that the process inherits: its user then needs access only to the file
 * itself, not to the private directories above.
 */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';

const FIRST_FD = 3;

export class GuestPaths {
  readonly #dir: DomainDir;
  readonly #inherit: boolean;
  readonly #directories: string[] = [];
  #handles: FileHandle[] = [];

  /** Without `inherit` the process runs as our own user and gets absolute paths. */
  constructor(dir: DomainDir, { inherit }: { inherit: boolean }) {
    this.#dir = dir;
    this.#inherit = inherit;
  }

  pathFor(absolute: string): string {
    if (absolute.startsWith(`${this.#dir.path}/`)) return relative(this.#dir.run, absolute);
    if (!this.#inherit) return absolute;
    const directory = dirname(absolute);
    let index = this.#directories.indexOf(directory);
    if (index === -1) index = this.#directories.push(directory) - 1;
    return join('/proc/self/fd', String(FIRST_FD + index), basename(absolute));
  }

  /** Opens the directories of all requested paths, in the order of their descriptor numbers. */
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
