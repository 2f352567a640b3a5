/**
 * Persistent state of simulated guests: small texts by the state directory of a definition. They stand for the files of
 * swtpm and OVMF; keys that begin with EFI_PREFIX are EFI variables. Kept in memory, or in one file of a host.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StateEntry } from '#node/hypervisor/fake/fake-endpoints.ts';

export const EFI_PREFIX = 'efi/';
const PRIVATE_FILE = 0o600;

export class FakeStates {
  readonly #file: string | undefined;
  readonly #entries = new Map<string, Map<string, string>>();

  /** `dir` must exist. */
  constructor(dir?: string) {
    this.#file = dir === undefined ? undefined : join(dir, 'kept');
    if (this.#file === undefined || !existsSync(this.#file)) return;
    const read = JSON.parse(readFileSync(this.#file, 'utf8')) as [string, StateEntry[]][];
    this.#entries = new Map(read.map(([directory, entries]) => [directory, new Map(entries)]));
  }

  read(directory: string): ReadonlyMap<string, string> {
    return this.#entries.get(directory) ?? new Map();
  }

  write(directory: string, key: string, value: string): void {
    this.replace(directory, [...this.read(directory), [key, value]]);
  }

  /** Replaces all entries of the directory. */
  replace(directory: string, entries: readonly StateEntry[]): void {
    this.#entries.set(directory, new Map(entries));
    if (this.#file === undefined) return;
    const all = [...this.#entries].map(([at, map]) => [at, [...map]]);
    writeFileSync(`${this.#file}.new`, JSON.stringify(all), { mode: PRIVATE_FILE });
    renameSync(`${this.#file}.new`, this.#file);
  }
}
