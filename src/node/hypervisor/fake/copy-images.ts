/**
 * Copies the real images behind simulated guests. If the volumes of a node are real, copies of disks and moved guests
 * need real images, too. Simulated guests do not write to their disks, so an image can be copied at any time.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { DiskSource } from '#node/hardware/domain-definition.ts';
import type { CopiedDisk } from '#node/hypervisor/fake/fake-copies.ts';
import type { RealImages } from '#node/hypervisor/fake/fake-source.ts';

const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

export async function copyImages(copies: readonly CopiedDisk[]): Promise<void> {
  for (const { source, format, path } of copies) {
    await qemuImg('copy', source, ['convert', '-f', format, '-O', 'qcow2', source, path]);
  }
}

export const realImages: RealImages = {
  async bytes({ path, format }: DiskSource): Promise<number> {
    const info = await qemuImg('inspect', path, ['info', '--output=json', '-U', '-f', format, path]);
    return (JSON.parse(info) as { 'virtual-size': number })['virtual-size'];
  },
  /** Copies into an existing image of the same size. */
  async move(from: DiskSource, to: DiskSource): Promise<void> {
    await qemuImg('move', from.path, ['convert', '-n', '-f', from.format, '-O', to.format, from.path, to.path]);
  },
};

async function qemuImg(verb: string, path: string, args: readonly string[]): Promise<string> {
  try {
    return (await run('qemu-img', args, { timeout: TIMEOUT_MS })).stdout;
  } catch (cause) {
    throw new HypervisorError(`Cannot ${verb} "${path}": ${(cause as Error).message}`, { cause });
  }
}
