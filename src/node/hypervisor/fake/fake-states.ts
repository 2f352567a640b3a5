/**
 * Persistent state of simulated guests: small texts by the state directory of a definition. They stand for the files of
 * swtpm and OVMF; keys that begin with EFI_PREFIX are EFI variables. Kept in memory, or in one file of a host.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './fake-doors.ts';

export const EFI_PREFIX = 'efi/';
const PRIVATE_FILE = 0o600;

export class FakeStates {
  readonly #file: string | undefined;
  readonly #kept = new Map<string, Map<string, string>>();

  /** `dir` must exist. */
  constructor(dir?: string) {
    this.#file = dir === undefined ? undefined : join(dir, 'kept');
    if (this.#file === undefined || !existsSync(this.#file)) return;
    const read = JSON.parse(readFileSync(this.#file, 'utf8')) as [string, Entry[]][];
    this.#kept = new Map(read.map(([directory, entries]) => [directory, new Map(entries)]));
  }

  of(directory: string): ReadonlyMap<string, string> {
    return this.#kept.get(directory) ?? new Map();
  }

  keep(directory: string, key: string, value: string): void {
    this.replace(directory, [...this.of(directory), [key, value]]);
  }

  /** Replaces all entries of the directory. */
  replace(directory: string, entries: readonly Entry[]): void {
    this.#kept.set(directory, new Map(entries));
    if (this.#file === undefined) return;
    const all = [...this.#kept].map(([at, map]) => [at, [...map]]);
    writeFileSync(`${this.#file}.new`, JSON.stringify(all), { mode: PRIVATE_FILE });
    renameSync(`${this.#file}.new`, this.#file);
  }
}
