/**
 * The persistent state of a guest, in the directory that its definition names. Created at the first start, reused
 * later.
 *
 *   <directory>/          ours; only we can write to it
 *   <directory>/tpm/      the guest's user's    state of swtpm
 *   <directory>/nvram.fd  the guest's user's    EFI variables
 *   <directory>/lock      held by QEMU (state-lock.ts)
 *
 * State that is not persistent is in the domain directory (domain-dir.ts).
 */
import { lstat, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { invariant } from '#lib/invariant.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { syncDirectory } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { FirmwareFiles } from '#node/hypervisor/qemu/state/firmware.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { giveDirectory, giveFile } from '#node/hypervisor/qemu/sandbox/file-owner.ts';

/** Names below the directory. */
export const PERSISTENT_TPM = 'tpm';
export const PERSISTENT_NVRAM = 'nvram.fd';

const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;

/** Absolute paths; absent if that part is not persistent. */
export interface PersistentState {
  readonly tpm?: string;
  readonly nvram?: string;
}

/** Creates the missing parts of the persistent state, and gives all parts to the user. Their content is not changed. */
export async function ensurePersistentState(
  definition: DomainDefinition,
  firmware: FirmwareFiles | undefined,
  user: ProcessUser | undefined,
): Promise<PersistentState> {
  const variables = hasPersistentNvram(definition) ? firmware?.variables : undefined;
  const { state } = definition;
  if (!hasPersistentTpm(definition) && variables === undefined) return {};
  invariant(state !== undefined, 'a guest with persistent state has a state directory');
  return {
    ...(hasPersistentTpm(definition) && { tpm: await ensureTpm(state.directory, user) }),
    ...(variables !== undefined && { nvram: await ensureNvram(state.directory, variables, user) }),
  };
}

export function hasPersistentTpm({ devices }: DomainDefinition): boolean {
  return devices.some((device) => device.type === 'tpm' && device.persistent === true);
}

export function hasPersistentNvram({ firmware: { loader } }: DomainDefinition): boolean {
  return loader.type === 'efi' && loader.persistent === true;
}

async function ensureTpm(directory: string, user: ProcessUser | undefined): Promise<string> {
  const path = join(directory, PERSISTENT_TPM);
  if (!(await existsAs(path, 'directory'))) {
    await mkdir(path, { mode: PRIVATE_DIR });
    await syncDirectory(directory);
  }
  if (user !== undefined) await giveDirectory(path, user);
  return path;
}

async function ensureNvram(directory: string, template: string, user: ProcessUser | undefined): Promise<string> {
  const path = join(directory, PERSISTENT_NVRAM);
  if (!(await existsAs(path, 'file'))) await createNvram(path, template);
  if (user !== undefined) await giveFile(path, user, 'own');
  return path;
}

/** Creates the file atomically, even if this process or the machine stops. */
async function createNvram(path: string, template: string): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', PRIVATE_FILE);
  try {
    await file.writeFile(await readFile(template));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Reports whether the path exists. Throws if it is of another type, such as a link that leads out of the directory. */
async function existsAs(path: string, wanted: 'file' | 'directory'): Promise<boolean> {
  const stats = await lstat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  });
  if (stats === undefined) return false;
  if (wanted === 'file' ? stats.isFile() : stats.isDirectory()) return true;
  throw new HypervisorError(`"${path}" is not a ${wanted}`, { permanent: true });
}
