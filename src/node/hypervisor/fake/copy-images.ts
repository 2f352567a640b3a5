/**
 * Copies the real images that simulated guests stand on: where the volumes of a node are real, what becomes of a copy
 * expects an image too, and so does a guest that has moved. Nobody writes to the disks of simulated guests, so any moment is the same one.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { HypervisorError } from '../hypervisor.ts';
import type { DiskSource } from '#node/definition/domain-definition.ts';
import type { CopiedDisk } from './fake-copies.ts';
import type { RealImages } from './fake-source.ts';

const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

export async function copyImages(copies: readonly CopiedDisk[]): Promise<void> {
  for (const { source, format, path } of copies) {
    await qemuImg('copy', source, ['convert', '-f', format, '-O', 'qcow2', source, path]);
  }
}

export const realImages: RealImages = {
  async bytes({ path, format }: DiskSource): Promise<number> {
    const told = await qemuImg('look at', path, ['info', '--output=json', '-U', '-f', format, path]);
    return (JSON.parse(told) as { 'virtual-size': number })['virtual-size'];
  },
  /** The target is there already, and as large. */
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
