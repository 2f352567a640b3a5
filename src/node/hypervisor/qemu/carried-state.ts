/**
 * What outlives a guest (kept-state.ts), when the guest moves: its EFI variables are read at the source and written at
 * the target, where QEMU has them in memory only until the guest goes on; what swtpm keeps comes through QEMU. All files
 * lie in a directory of ours but belong to the guests' user, so links are never followed.
 */
import { constants } from 'node:fs';
import { open, readdir, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { HypervisorError } from '../hypervisor.ts';
import { syncDirectory } from './domain-dir.ts';
import { KEPT_NVRAM, KEPT_TPM, keepsNvram, keepsTpm } from './kept-state.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/** Far more than any firmware has. */
const MAX_NVRAM_BYTES = 16 * 2 ** 20;

/** What an earlier try left: a TPM that finds anything there would begin with it. */
export async function emptyTpm(path: string): Promise<void> {
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true });
}

/** Undefined where they are not kept. */
export async function readKeptNvram(definition: DomainDefinition): Promise<Buffer | undefined> {
  const path = nvramOf(definition);
  if (path === undefined) return undefined;
  return withFile(path, O_RDONLY, async (file) => {
    const { size } = await file.stat();
    if (size > MAX_NVRAM_BYTES) throw new HypervisorError(`"${path}" has ${size} bytes; expected EFI variables`);
    return file.readFile();
  });
}

/** Over what is there, which QEMU has open: when the guest goes on, it writes the same bytes to the same file. */
export async function writeKeptNvram(definition: DomainDefinition, content: Buffer | undefined): Promise<void> {
  const path = nvramOf(definition);
  if (path === undefined) return;
  if (content === undefined) throw new HypervisorError('its EFI variables did not come along');
  await withFile(path, O_WRONLY, async (file) => {
    const { size } = await file.stat();
    if (size !== content.length) {
      throw new HypervisorError(`its EFI variables have ${content.length} bytes; expected ${size}`);
    }
    let written = 0;
    while (written < size) written += (await file.write(content, written, size - written, written)).bytesWritten;
    await file.sync();
  });
}

/** All of it is on disk when it resolves. */
export async function syncKeptState(definition: DomainDefinition): Promise<void> {
  const { state } = definition;
  if (state === undefined) return;
  if (keepsTpm(definition)) {
    const tpm = join(state.directory, KEPT_TPM);
    const entries = await readdir(tpm, { withFileTypes: true });
    for (const entry of entries) if (entry.isFile()) await syncFile(join(tpm, entry.name));
    await syncDirectory(tpm);
  }
  await syncDirectory(state.directory);
}

/** Also of block devices. Fine where it is gone meanwhile: swtpm replaces its files, and the new one is there. */
export async function syncFile(path: string): Promise<void> {
  try {
    await withFile(path, O_RDONLY, (file) => file.sync());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

async function withFile<T>(path: string, mode: number, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, mode | O_NOFOLLOW | O_NONBLOCK);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

function nvramOf(definition: DomainDefinition): string | undefined {
  const { state } = definition;
  return state === undefined || !keepsNvram(definition) ? undefined : join(state.directory, KEPT_NVRAM);
}
