/**
 * The files of a state (hypervisor/qemu/kept-state.ts) into an archive, and out of one again. A guest may run meanwhile:
 * swtpm puts its files into place as a whole, and EFI variables are such as a crash would leave them, which firmware
 * bears. Locks and what is being written are left out.
 */
import { constants } from 'node:fs';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/snapshot-state.ts';
import type { Directory } from './directory.ts';
import { giveTo, PRIVATE_FILE } from './disk-image.ts';
import { isTpmFile, NVRAM_FILE, printArchive, TPM_DIR, type StateFile } from './state-archive.ts';
import type { GuestUser } from './volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = constants;

const PRIVATE_DIR = 0o700;
/** swtpm writes seldom: that often in a row is no chance any more. */
const MAX_TRIES = 10;

/** `state`: undefined where no guest has kept anything yet. Throws SnapshotUnusable for what is too much. */
export async function packState(state: Directory | undefined): Promise<Buffer> {
  return printArchive([...(await tpmFiles(state)), ...(await filesOf(state, [NVRAM_FILE])).found]);
}

async function tpmFiles(state: Directory | undefined): Promise<StateFile[]> {
  await using tpm = await state?.child(TPM_DIR);
  if (tpm === undefined) return [];
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const names = (await tpm.names()).filter(isTpmFile).toSorted();
    const { found, isComplete } = await filesOf(tpm, names);
    // One that was there a moment ago is there under another name by now.
    if (isComplete) return found.map(({ name, content }) => ({ name: `${TPM_DIR}/${name}`, content }));
  }
  throw new Error(`Cannot copy the state in "${tpm.path}": its files change all the time`);
}

async function filesOf(
  directory: Directory | undefined,
  names: readonly string[],
): Promise<{ found: StateFile[]; isComplete: boolean }> {
  const found: StateFile[] = [];
  for (const name of names) {
    await using file = await directory?.open(name, O_RDONLY);
    if (file === undefined) continue;
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_STATE_ARCHIVE_BYTES) {
      throw new Error(`Cannot copy "${directory?.path}/${name}": it is no file of a state`);
    }
    found.push({ name, content: await file.readFile() });
  }
  return { found, isComplete: found.length === names.length };
}

/** Into a directory with nothing in it. All of it is on disk when it resolves, but for the name of the directory. */
export async function unpackState(
  files: readonly StateFile[],
  state: Directory,
  guestUser: GuestUser | undefined,
): Promise<void> {
  const prefix = `${TPM_DIR}/`;
  const ofTpm = files.filter(({ name }) => name.startsWith(prefix));
  if (ofTpm.length > 0) {
    await using tpm = await state.makeChild(TPM_DIR, PRIVATE_DIR);
    for (const { name, content } of ofTpm) await write(tpm, name.slice(prefix.length), content, guestUser);
    await tpm.sync();
    await using own = await state.open(TPM_DIR, O_RDONLY);
    if (guestUser !== undefined) await own?.chown(guestUser.uid, guestUser.gid);
  }
  const nvram = files.find(({ name }) => name === NVRAM_FILE);
  if (nvram !== undefined) await write(state, NVRAM_FILE, nvram.content, guestUser);
  await state.sync();
}

async function write(
  directory: Directory,
  name: string,
  content: Buffer,
  guestUser: GuestUser | undefined,
): Promise<void> {
  await using file = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (file === undefined) throw new Error(`Cannot write "${directory.path}/${name}": its directory went away`);
  await file.writeFile(content);
  await giveTo(file, guestUser);
  await file.sync();
}
