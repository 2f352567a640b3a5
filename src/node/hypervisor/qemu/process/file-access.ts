/**
 * Gives a running QEMU access to a file of the host: another disk, the target of a copy, the socket of a migration. How
 * depends on how QEMU was started:
 *
 *   as our own user           it can open every file that we can
 *   in a sandbox              the file is mounted into the sandbox (sandbox/plugged-files.ts)
 *   by an earlier version     as one user for all guests, without a sandbox: the file is linked into its directory
 */
import { link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { giveFile } from '#node/hypervisor/qemu/sandbox/file-owner.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';

export interface FileAccess {
  /**
   * Returns a path by which QEMU can open the file. `name` identifies the access; QEMU may see the file under this name.
   * May be repeated.
   */
  pathOf(name: string, path: string): Promise<string>;
  /** Ends the access; QEMU can still use the file if it has it open. Does nothing if there is no such access. */
  release(name: string): Promise<void>;
}

export const ownUserAccess: FileAccess = {
  pathOf: async (_, path) => path,
  release: async () => undefined,
};

/** `run`: the working directory of QEMU. */
export function linkAccess({ user, run }: { readonly user: ProcessUser; readonly run: string }): FileAccess {
  const release = (name: string) => rm(join(run, name), { force: true });
  return {
    release,
    async pathOf(name, path) {
      await release(name);
      await giveFile(path, user, 'own').catch(ignoreSocket);
      await link(path, join(run, name)).catch((cause: unknown) => {
        throw new HypervisorError(`QEMU was started by an earlier version and cannot open "${path}"; restart the VM`, {
          cause,
        });
      });
      return name;
    },
  };
}

/** Sockets cannot be opened as files. They belong to QEMU's user already. */
export function ignoreSocket(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
}
