/**
 * Copies of whole images, by programs. Both directories must be ours alone, so that nobody else puts links into them.
 * Nothing begins where there is no room for it: guests whose disks are on a file system that is full are paused.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { VolumesHost } from './volumes-host.ts';

/** Some terabytes on a slow disk. */
const TIMEOUT_MS = 12 * 3600 * 1000;
const BLOCK_BYTES = 512;

export interface CopyOptions {
  readonly signal: AbortSignal | undefined;
}

/** Byte for byte. Where the file system can, the two share their blocks, which takes no room; else holes stay holes. */
export async function copyFile(from: string, to: string, host: VolumesHost, { signal }: CopyOptions): Promise<void> {
  const options = { signal, timeoutMs: TIMEOUT_MS };
  // cp would copy a link as one.
  const names = ['--no-dereference', '--', from, to];
  try {
    await host.run('cp', ['--reflink=always', ...names], options);
  } catch {
    signal?.throwIfAborted();
    await checkRoom(from, to, host);
    await host.run('cp', ['--reflink=auto', '--sparse=always', ...names], options);
  }
}

/** What is in a qcow2 image, as raw bytes. The file must be there: programs make files that everybody may read. */
export async function unpackFile(from: string, to: string, host: VolumesHost, { signal }: CopyOptions): Promise<void> {
  await checkRoom(from, to, host);
  const args = ['convert', '-q', '-f', 'qcow2', '-O', 'raw', from, to];
  await host.run('qemu-img', args, { signal, timeoutMs: TIMEOUT_MS });
}

async function checkRoom(from: string, to: string, { freeBytes }: VolumesHost): Promise<void> {
  const wanted = (await stat(from)).blocks * BLOCK_BYTES;
  const left = await freeBytes(dirname(to));
  if (left >= wanted) return;
  throw new Error(`Cannot copy to "${to}": the file system has ${left} bytes left; expected ${wanted}`);
}
