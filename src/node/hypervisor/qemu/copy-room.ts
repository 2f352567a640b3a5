/**
 * Whether there is room for copies. It must be known before they begin: QEMU copies what a guest is about to overwrite
 * first, and where that fails, so does the write of the guest.
 */
import { stat, statfs } from 'node:fs/promises';
import { HypervisorError } from '../hypervisor.ts';

export interface RoomNeeded {
  readonly path: string;
  readonly bytes: number;
}

/** What the image needs besides the data, for each MiB of the disk, and the least. */
const PER_DISK_MIB = 256;
const MIB = 2 ** 20;

/** At most so much: what the disk has allocated now. What is not known (block devices tell nothing) counts as nothing. */
export function roomFor(medium: { readonly bytes: number; readonly allocatedBytes: number }): number {
  return medium.allocatedBytes + Math.ceil(medium.bytes / MIB) * PER_DISK_MIB + MIB;
}

/** Throws where a file system has not enough for all that it is to take. */
export async function checkRoom(needed: readonly RoomNeeded[]): Promise<void> {
  const onDevices = await Promise.all(needed.map(async (one) => ({ ...one, device: (await stat(one.path)).dev })));
  for (const together of Map.groupBy(onDevices, ({ device }) => device).values()) {
    const wanted = together.reduce((sum, { bytes }) => sum + bytes, 0);
    const path = together[0]?.path ?? '';
    const { bavail, bsize } = await statfs(path);
    const left = bavail * bsize;
    if (left < wanted) {
      const message = `no room for "${path}": the file system has ${left} bytes left; expected ${wanted}`;
      // Room may come, but not by trying: whoever waits for the copies is to know now.
      throw new HypervisorError(message, { permanent: true });
    }
  }
}
