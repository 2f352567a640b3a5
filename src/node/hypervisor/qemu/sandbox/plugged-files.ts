/**
 * Files that a guest gets while it runs. Each sandbox shares one directory of the host (`rslave`): what is mounted below
 * it appears in the sandbox. The directory is not in the domain's directory, which is removed recursively.
 *
 *   <node dir>/plugged/<domain id>/           mounted on itself, so that it is shared with the sandbox and nothing else
 *   <node dir>/plugged/<domain id>/<name>     the file, mounted
 */
import { mkdir, open, realpath, rm, rmdir, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readMounts } from '#lib/mounts.ts';
import { openPath } from '#lib/open-path.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { openSocket, type FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { runProgram } from '#node/hypervisor/qemu/process/run-program.ts';
import { giveFile } from '#node/hypervisor/qemu/sandbox/file-owner.ts';

const PASSABLE = 0o711;

/** Creates the directory of a new sandbox. */
export async function openPluggedDir(path: string): Promise<void> {
  await removePluggedDir(path);
  await mkdir(path, { recursive: true, mode: PASSABLE });
  await runProgram('mount', ['--bind', '--make-shared', path, path]);
}

/** Unmounts everything and removes the directory. Does nothing if there is none. */
export async function removePluggedDir(path: string): Promise<void> {
  const mounted = (await readMountPoints()).filter((point) => point === path || point.startsWith(`${path}/`));
  // The latest first, because it may cover an earlier one.
  for (const point of mounted.reverse()) await runProgram('umount', ['--lazy', point]);
  await rm(path, { recursive: true, force: true });
  await rmdir(dirname(path)).catch(() => undefined);
}

export function pluggedAccess({ user, path: dir }: { readonly user: ProcessUser; readonly path: string }): FileAccess {
  const release = async (name: string) => {
    const point = join(dir, name);
    const times = (await readMountPoints()).filter((mounted) => mounted === point).length;
    for (let i = 0; i < times; i++) await runProgram('umount', ['--lazy', point]);
    await rm(point, { force: true });
  };
  return {
    release,
    async pathOf(name, path, { isReadOnly }) {
      await release(name);
      const source = join(await realpath(dirname(path)), basename(path));
      await giveFile(source, user, isReadOnly ? 'shared' : 'own');
      await using file = await openPath(source);
      return await mountFile(file, join(dir, name), isReadOnly ? ['-o', 'ro'] : []);
    },
    async socketPathOf(name, path) {
      await release(name);
      await using socket = await openSocket(path, user.uid);
      return await mountFile(socket, join(dir, name));
    },
  };
}

/** Mounts the opened file, whatever is at its path now. */
async function mountFile({ fd }: FileHandle, point: string, options: readonly string[] = []): Promise<string> {
  await (await open(point, 'wx', 0o600)).close();
  await runProgram('mount', ['--no-canonicalize', '--bind', ...options, `/proc/${process.pid}/fd/${fd}`, point]);
  return point;
}

/** Returns the mount points of this process, in the order of their mounts. */
async function readMountPoints(): Promise<string[]> {
  return (await readMounts()).map(({ target }) => target);
}
