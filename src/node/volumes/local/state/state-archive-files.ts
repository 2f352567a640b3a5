/**
 * Packs the files of a persistent state (hypervisor/qemu/state/persistent-state.ts) into an archive, and unpacks them. A guest may
 * run meanwhile: swtpm replaces its files atomically, and EFI variables are copied as a crash would leave them, which
 * firmware tolerates. Lock files and unfinished files are left out.
 */
import { constants } from 'node:fs';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import type { Directory } from '#node/volumes/local/mounts/directory.ts';
import { PRIVATE_FILE } from '#node/volumes/local/content/disk-image.ts';
import {
  isTpmFile,
  NVRAM_FILE,
  buildArchive,
  TPM_DIR,
  type StateFile,
} from '#node/volumes/local/state/state-archive.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = constants;

const PRIVATE_DIR = 0o700;
/** swtpm writes rarely, so this many changes in a row mean that something is wrong. */
const MAX_TRIES = 10;

/** Packs the files; none if `state` is undefined. Throws SnapshotUnusableError if the files exceed the limits. */
export async function packState(state: Directory | undefined): Promise<Buffer> {
  return buildArchive([...(await readTpmFiles(state)), ...(await readFiles(state, [NVRAM_FILE])).found]);
}

async function readTpmFiles(state: Directory | undefined): Promise<StateFile[]> {
  await using tpm = await state?.child(TPM_DIR);
  if (tpm === undefined) return [];
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const names = (await tpm.names()).filter(isTpmFile).toSorted();
    const { found, isComplete } = await readFiles(tpm, names);
    // A file that disappeared meanwhile was renamed, so its new name must be read.
    if (isComplete) return found.map(({ name, content }) => ({ name: `${TPM_DIR}/${name}`, content }));
  }
  throw new Error(`Cannot copy the state in "${tpm.path}": its files keep changing`);
}

async function readFiles(
  directory: Directory | undefined,
  names: readonly string[],
): Promise<{ found: StateFile[]; isComplete: boolean }> {
  const found: StateFile[] = [];
  for (const name of names) {
    await using file = await directory?.open(name, O_RDONLY);
    if (file === undefined) continue;
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_STATE_ARCHIVE_BYTES) {
      throw new Error(`Cannot copy "${directory?.path}/${name}": it is not a file of a persistent state`);
    }
    found.push({ name, content: await file.readFile() });
  }
  return { found, isComplete: found.length === names.length };
}

/** Unpacks into an empty directory. Everything is durable when this resolves, except for the name of the directory. */
export async function unpackState(files: readonly StateFile[], state: Directory): Promise<void> {
  const prefix = `${TPM_DIR}/`;
  const ofTpm = files.filter(({ name }) => name.startsWith(prefix));
  if (ofTpm.length > 0) {
    await using tpm = await state.makeChild(TPM_DIR, PRIVATE_DIR);
    for (const { name, content } of ofTpm) await writeStateFile(tpm, name.slice(prefix.length), content);
    await tpm.sync();
  }
  const nvram = files.find(({ name }) => name === NVRAM_FILE);
  if (nvram !== undefined) await writeStateFile(state, NVRAM_FILE, nvram.content);
  await state.sync();
}

async function writeStateFile(directory: Directory, name: string, content: Buffer): Promise<void> {
  await using file = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (file === undefined)
    throw new Error(`Cannot write "${directory.path}/${name}": its directory was removed meanwhile`);
  await file.writeFile(content);
  await file.sync();
}
