/**
 * Copies the files of the built-in guest to the directory of the node: guests run as a user that cannot enter the
 * directory of the program.
 */
import { chmod, copyFile, link, mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

interface GuestFiles {
  readonly kernelPath: string;
  readonly initrdPath: string;
}

/** Returns undefined if the guest was not built. */
export async function placeGuestFiles(from: string, nodeDir: string): Promise<GuestFiles | undefined> {
  const dir = join(nodeDir, 'guest');
  await mkdir(dir, { recursive: true });
  await chmod(dir, 0o711);
  const kernelPath = await placeFile(join(from, 'vmlinuz'), join(dir, 'vmlinuz'));
  const initrdPath = await placeFile(join(from, 'initrd.gz'), join(dir, 'initrd.gz'));
  return kernelPath === undefined || initrdPath === undefined ? undefined : { kernelPath, initrdPath };
}

async function placeFile(from: string, to: string): Promise<string | undefined> {
  const [source, present] = await Promise.all([statIfExists(from), statIfExists(to)]);
  if (source === undefined) return undefined;
  if (present !== undefined && present.ino === source.ino && present.dev === source.dev) return to;
  const temporary = `${to}.new`;
  await rm(temporary, { force: true });
  // A link keeps the mode of the file, and some systems make their kernels unreadable.
  const isReadable = (source.mode & 0o004) !== 0;
  if (!isReadable || !(await tryLink(from, temporary))) {
    await copyFile(from, temporary);
    await chmod(temporary, 0o644);
  }
  await rename(temporary, to);
  return to;
}

/** Creates a hard link. Returns false if the paths are on different file systems, or if it is not permitted. */
async function tryLink(from: string, to: string): Promise<boolean> {
  return await link(from, to).then(
    () => true,
    () => false,
  );
}

async function statIfExists(path: string) {
  return await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}
