/**
 * Moves the persistent state (persistent-state.ts) of a migrating guest. The EFI variables are read at the source and
 * written at the target, where QEMU holds them only in memory until the guest continues; QEMU itself transfers the TPM
 * state. The files are in our directory but belong to the guests' user, so links are never followed.
 */
import { constants } from 'node:fs';
import { open, readdir, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { syncDirectory } from '#node/hypervisor/qemu/record/domain-dir.ts';
import {
  PERSISTENT_NVRAM,
  PERSISTENT_TPM,
  hasPersistentNvram,
  hasPersistentTpm,
} from '#node/hypervisor/qemu/state/persistent-state.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/** Far more than any firmware needs. */
const MAX_NVRAM_BYTES = 16 * 2 ** 20;

/** Removes the state of an earlier attempt, which the TPM would otherwise load. */
export async function clearTpmState(path: string): Promise<void> {
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true });
}

/** Returns the EFI variables, or undefined if they are not persistent. */
export async function readNvram(definition: DomainDefinition): Promise<Buffer | undefined> {
  const path = nvramPath(definition);
  if (path === undefined) return undefined;
  return withFile(path, O_RDONLY, async (file) => {
    const { size } = await file.stat();
    if (size > MAX_NVRAM_BYTES)
      throw new HypervisorError(
        `the file of EFI variables "${path}" has ${size} bytes; expected at most ${MAX_NVRAM_BYTES}`,
      );
    // The guest's QEMU may make the file longer meanwhile.
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
    return buffer.subarray(0, bytesRead);
  });
}

/**
 * Overwrites the existing file, which QEMU has open. When the guest continues, QEMU writes the same bytes to the same
 * file.
 */
export async function writeNvram(definition: DomainDefinition, content: Buffer | undefined): Promise<void> {
  const path = nvramPath(definition);
  if (path === undefined) return;
  if (content === undefined) throw new HypervisorError('the source did not send the EFI variables');
  await withFile(path, O_WRONLY, async (file) => {
    const { size } = await file.stat();
    if (size !== content.length) {
      throw new HypervisorError(`the EFI variables from the source have ${content.length} bytes; expected ${size}`);
    }
    let written = 0;
    while (written < size) written += (await file.write(content, written, size - written, written)).bytesWritten;
    await file.sync();
  });
}

/** Makes the persistent state durable. */
export async function syncPersistentState(definition: DomainDefinition): Promise<void> {
  const { state } = definition;
  if (state === undefined) return;
  if (hasPersistentTpm(definition)) {
    const tpm = join(state.directory, PERSISTENT_TPM);
    const entries = await readdir(tpm, { withFileTypes: true });
    for (const entry of entries) if (entry.isFile()) await syncFile(join(tpm, entry.name));
    await syncDirectory(tpm);
  }
  await syncDirectory(state.directory);
}

/**
 * Makes a file or block device durable. Does nothing if the file is gone: swtpm replaces its files, and the new file is
 * synced.
 */
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

function nvramPath(definition: DomainDefinition): string | undefined {
  const { state } = definition;
  return state === undefined || !hasPersistentNvram(definition) ? undefined : join(state.directory, PERSISTENT_NVRAM);
}
