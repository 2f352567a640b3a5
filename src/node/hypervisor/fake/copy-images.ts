/**
 * Copies the real images that simulated guests stand on: where the volumes of a node are real, what becomes of a copy
 * expects an image too. Nobody writes to the disks of simulated guests, so any moment is the same one.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { HypervisorError } from '../hypervisor.ts';
import type { CopiedDisk } from './fake-copies.ts';

const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

export async function copyImages(copies: readonly CopiedDisk[]): Promise<void> {
  for (const { source, format, path } of copies) {
    const args = ['convert', '-f', format, '-O', 'qcow2', source, path];
    await run('qemu-img', args, { timeout: TIMEOUT_MS }).catch((cause: unknown) => {
      throw new HypervisorError(`Cannot copy "${source}": ${(cause as Error).message}`, { cause });
    });
  }
}
