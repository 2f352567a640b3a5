/**
 * Gives files of the host to the user of a guest, when the guest gets access to them. Nobody else than root and this user
 * can open them then.
 */
import { constants } from 'node:fs';
import { lchown, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SHARED_DISKS_GID, type ProcessUser } from '#node/hardware/guest-user.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** `own`: only this guest uses the file. `shared`: other guests may read it at the same time. */
export type FileUse = 'own' | 'shared';

const OWN_MODE = 0o600;
const SHARED_MODE = 0o640;
const MAX_ENTRIES = 256;

/** Does nothing if the file has this owner already. Never follows links. */
export async function giveFile(path: string, user: ProcessUser, use: FileUse): Promise<void> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const { uid, gid, mode } = await file.stat();
    // Another guest may be the owner of a shared file: it keeps its access.
    const [wantedUid, wantedGid, wantedMode] =
      use === 'own' ? [user.uid, user.gid, OWN_MODE] : [uid, SHARED_DISKS_GID, SHARED_MODE];
    if (uid !== wantedUid || gid !== wantedGid) await file.chown(wantedUid, wantedGid).catch(ignoreSquash);
    if ((mode & 0o777) !== wantedMode) await file.chmod(wantedMode).catch(ignoreSquash);
  } finally {
    await file.close();
  }
}

/** An NFS server may map all users to one, which owns all files. QEMU reports a file that it cannot open then. */
function ignoreSquash(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
}

/** Gives a directory and the files in it to the user. Links in it are given as links. */
export async function giveDirectory(path: string, user: ProcessUser): Promise<void> {
  const names = await readdir(path);
  if (names.length > MAX_ENTRIES)
    throw new Error(`"${path}" has ${names.length} entries; expected at most ${MAX_ENTRIES}`);
  for (const name of names) await lchown(join(path, name), user.uid, user.gid);
  await lchown(path, user.uid, user.gid);
}
