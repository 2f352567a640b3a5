/**
 * Checks the free space for disk copies before they start: QEMU copies data before the guest overwrites it, and if that
 * fails, the guest's write fails, too.
 */
import { stat, statfs } from 'node:fs/promises';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

interface NeededSpace {
  readonly path: string;
  readonly bytes: number;
}

/** Metadata of the image for each MiB of the disk; at least one MiB in total. */
const METADATA_BYTES_PER_MIB = 256;
const MIB = 2 ** 20;

/**
 * Returns the maximum space of a copy: what the disk has allocated now, and metadata. Unknown allocation (block
 * devices) counts as 0.
 */
export function copySpaceBytes(medium: { readonly bytes: number; readonly allocatedBytes: number }): number {
  return medium.allocatedBytes + Math.ceil(medium.bytes / MIB) * METADATA_BYTES_PER_MIB + MIB;
}

/** Throws if a file system has too little space for all of its copies. */
export async function checkFreeSpace(needed: readonly NeededSpace[]): Promise<void> {
  const onDevices = await Promise.all(needed.map(async (one) => ({ ...one, device: (await stat(one.path)).dev })));
  for (const copies of Map.groupBy(onDevices, ({ device }) => device).values()) {
    const neededBytes = copies.reduce((sum, { bytes }) => sum + bytes, 0);
    const path = copies[0]?.path ?? '';
    const { bavail, bsize } = await statfs(path);
    const freeBytes = bavail * bsize;
    if (freeBytes < neededBytes) {
      const message = `not enough space for "${path}": the file system has ${freeBytes} bytes left, ${neededBytes} are needed; free some space`;
      // Space may become free, but not by a retry, and the user has to know now.
      throw new HypervisorError(message, { permanent: true });
    }
  }
}
