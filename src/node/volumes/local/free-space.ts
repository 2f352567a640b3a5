/**
 * The free space of file systems, less a floor that volumes, uploads, snapshots and copies never use: the store, the
 * certificates and the records of running guests are on the same file system, and must be writable when it is full.
 */
import { statfs } from 'node:fs/promises';
import type { StorageSize } from '#api/storage/storage-size.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
/** The floor is this share of the file system, and never more than MAX_FLOOR_BYTES. */
const FLOOR_SHARE = 0.05;
const MAX_FLOOR_BYTES = GIB;

/** Returns the space that must stay free. Pure. */
export function floorBytes(totalBytes: number): number {
  return Math.min(Math.floor(totalBytes * FLOOR_SHARE), MAX_FLOOR_BYTES);
}

/** Returns the free space above the floor. It is negative if the file system is below the floor. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize, blocks } = await statfs(path);
  return bavail * bsize - floorBytes(blocks * bsize);
}

/** Returns the largest volumes that the file systems of these directories could hold if they were empty. */
export async function storageSize(nodeDir: string, sharedDir: string): Promise<StorageSize> {
  const [nodeBytes, sharedBytes] = await Promise.all([usableBytes(nodeDir), usableBytes(sharedDir)]);
  return { nodeBytes, sharedBytes };
}

/** Returns the largest file that the file system of a directory could hold if it were empty. */
export async function usableBytes(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  const bytes = blocks * bsize - floorBytes(blocks * bsize);
  return Math.floor(bytes / MIB) * MIB;
}
