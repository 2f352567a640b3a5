/**
 * Copies whole images with cp and qemu-img. Both directories must be writable by us only, so that no other user can put
 * links into them. A copy does not begin without enough free space, because guests on a full file system are paused.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { VolumesHost } from '#node/volumes/local/volumes-host.ts';

/** Enough for some terabytes on a slow disk. */
const TIMEOUT_MS = 12 * 3600 * 1000;
const BLOCK_BYTES = 512;

export interface CopyOptions {
  readonly signal: AbortSignal | undefined;
}

/** Copies a file byte for byte: with shared blocks if the file system supports that, otherwise as a sparse file. */
export async function copyFile(from: string, to: string, host: VolumesHost, { signal }: CopyOptions): Promise<void> {
  const options = { signal, timeoutMs: TIMEOUT_MS };
  // Links are copied as links, not followed.
  const names = ['--no-dereference', '--', from, to];
  try {
    await host.run('cp', ['--reflink=always', ...names], options);
  } catch {
    signal?.throwIfAborted();
    await checkFreeSpace(from, to, host);
    await host.run('cp', ['--reflink=auto', '--sparse=always', ...names], options);
  }
}

/**
 * Converts a qcow2 image to raw. The target must exist, because qemu-img would create a file that every user can read.
 */
export async function unpackFile(from: string, to: string, host: VolumesHost, { signal }: CopyOptions): Promise<void> {
  await checkFreeSpace(from, to, host);
  const args = ['convert', '-q', '-f', 'qcow2', '-O', 'raw', from, to];
  const files = [
    { path: from, readonly: true },
    { path: to, readonly: false },
  ];
  await host.runIsolated('qemu-img', args, { files, signal, timeoutMs: TIMEOUT_MS });
}

async function checkFreeSpace(from: string, to: string, { freeBytes }: VolumesHost): Promise<void> {
  const neededBytes = (await stat(from)).blocks * BLOCK_BYTES;
  const leftBytes = await freeBytes(dirname(to));
  if (leftBytes >= neededBytes) return;
  throw new Error(
    `Cannot copy to "${to}": the file system has ${leftBytes} bytes left; expected at least ${neededBytes}`,
  );
}
