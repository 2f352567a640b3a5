/**
 * The files of the built-in guest, where guests can read them: they run as somebody who may not enter the folder of the
 * program, so that each node has copies of its own.
 */
import { chmod, copyFile, link, mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

export interface GuestFiles {
  readonly kernelPath: string;
  readonly initrdPath: string;
}

/** Undefined where the guest was not built. */
export async function placeGuestFiles(from: string, nodeDir: string): Promise<GuestFiles | undefined> {
  const dir = join(nodeDir, 'guest');
  await mkdir(dir, { recursive: true });
  await chmod(dir, 0o711);
  const kernelPath = await place(join(from, 'vmlinuz'), join(dir, 'vmlinuz'));
  const initrdPath = await place(join(from, 'initrd.gz'), join(dir, 'initrd.gz'));
  return kernelPath === undefined || initrdPath === undefined ? undefined : { kernelPath, initrdPath };
}

async function place(from: string, to: string): Promise<string | undefined> {
  const [source, present] = await Promise.all([statOf(from), statOf(to)]);
  if (source === undefined) return undefined;
  if (present !== undefined && present.ino === source.ino && present.dev === source.dev) return to;
  const fresh = `${to}.new`;
  await rm(fresh, { force: true });
  // A link keeps the mode of the file, and some systems hide their kernels.
  const isReadable = (source.mode & 0o004) !== 0;
  if (!isReadable || !(await linked(from, fresh))) {
    await copyFile(from, fresh);
    await chmod(fresh, 0o644);
  }
  await rename(fresh, to);
  return to;
}

/** False where the two are not on one file system, or we may not. */
async function linked(from: string, to: string): Promise<boolean> {
  return await link(from, to).then(
    () => true,
    () => false,
  );
}

async function statOf(path: string) {
  return await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}
