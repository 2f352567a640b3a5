/**
 * Files that a guest gets while it runs. Each sandbox shares one directory of the host (`rslave`): what is mounted below
 * it appears in the sandbox. The directory is not in the domain's directory, which is removed recursively.
 *
 *   <node dir>/plugged/<domain id>/           mounted on itself, so that it is shared with the sandbox and nothing else
 *   <node dir>/plugged/<domain id>/<name>     the file, mounted
 */
import { mkdir, open, realpath, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readMounts } from '#lib/mounts.ts';
import { openPath } from '#lib/open-path.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { ignoreSocket, type FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';
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
    async pathOf(name, path) {
      await release(name);
      const source = join(await realpath(dirname(path)), basename(path));
      await giveFile(source, user, 'own').catch(ignoreSocket);
      const point = join(dir, name);
      await (await open(point, 'wx', 0o600)).close();
      // A socket is in a directory of the guest, who could replace it by a link.
      const file = await openPath(source);
      try {
        await runProgram('mount', ['--no-canonicalize', '--bind', `/proc/${process.pid}/fd/${file.fd}`, point]);
      } finally {
        await file.close();
      }
      return point;
    },
  };
}

/** Returns the mount points of this process, in the order of their mounts. */
async function readMountPoints(): Promise<string[]> {
  return (await readMounts()).map(({ target }) => target);
}
