/**
 * Gives a running QEMU access to a file of the host: another disk, the target of a copy, the socket of a migration. How
 * depends on how QEMU was started:
 *
 *   as our own user           it can open every file that we can
 *   in a sandbox              the file is mounted into the sandbox (sandbox/plugged-files.ts)
 *   by an earlier version     as one user for all guests, without a sandbox: the file is linked into its directory
 */
import type { FileHandle } from 'node:fs/promises';
import { chown, link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openPath } from '#lib/open-path.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { giveFile } from '#node/hypervisor/qemu/sandbox/file-owner.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';

export interface FileAccess {
  /**
   * Returns a path by which QEMU can open the disk image or block device. `name` identifies the access; QEMU may see the
   * file under this name. May be repeated.
   */
  pathOf(name: string, path: string, options: { readonly isReadOnly: boolean }): Promise<string>;
  /**
   * Like `pathOf`, for a socket of the guest's QEMU on another node of this machine. That node reports the path, so
   * everything else is refused.
   */
  socketPathOf(name: string, path: string): Promise<string>;
  /** Ends the access; QEMU can still use the file if it has it open. Does nothing if there is no such access. */
  release(name: string): Promise<void>;
}

export const ownUserAccess: FileAccess = {
  pathOf: async (_, path) => path,
  async socketPathOf(...[, path]) {
    await using _ = await openSocket(path, process.getuid?.() ?? 0);
    return path;
  },
  release: async () => undefined,
};

/** `run`: the working directory of QEMU. `targetUid`: the user of the guest at another node. */
export function linkAccess({
  user,
  run,
  targetUid,
}: {
  readonly user: ProcessUser;
  readonly run: string;
  readonly targetUid: number;
}): FileAccess {
  const release = (name: string) => rm(join(run, name), { force: true });
  const linkTo = async (name: string, path: string) => {
    await link(path, join(run, name)).catch((cause: unknown) => {
      throw new HypervisorError(`QEMU was started by an earlier version and cannot open "${path}"; restart the VM`, {
        cause,
      });
    });
    return name;
  };
  return {
    release,
    async pathOf(name, path, { isReadOnly }) {
      await release(name);
      await giveFile(path, user, isReadOnly ? 'shared' : 'own');
      return await linkTo(name, path);
    },
    async socketPathOf(name, path) {
      await release(name);
      await using socket = await openSocket(path, targetUid);
      await chown(`/proc/self/fd/${socket.fd}`, user.uid, user.gid);
      return await linkTo(name, path);
    },
  };
}

/** Opens a socket of this user, without connecting to it. */
export async function openSocket(path: string, uid: number): Promise<FileHandle> {
  const socket = await openPath(path);
  const found = await socket.stat();
  if (found.isSocket() && found.uid === uid) return socket;
  await socket.close();
  throw new HypervisorError(`"${path}" is not a socket of the guest at the other node`);
}
