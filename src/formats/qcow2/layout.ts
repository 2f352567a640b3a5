/**
 * The layout of the qcow2 images that we write: version 3, clusters of 64 KiB, data compressed with deflate. Compressed
 * clusters share host clusters and are counted once in each of them.
 *
 *   cluster 0   header
 *   then        data, and an L2 table after each part of the disk that has data
 *   last        L1 table, refcount table, refcount blocks
 */

export const CLUSTER_BITS = 16;
export const CLUSTER = 2 ** CLUSTER_BITS;
export const ZERO_CLUSTER = Buffer.alloc(CLUSTER);
export const SECTOR = 512;
/** The entries of a table in one cluster. */
export const TABLE_ENTRIES = CLUSTER / 8;
/** The 16-bit counters of a refcount block. */
export const BLOCK_ENTRIES = CLUSTER / 2;

export const MAGIC = 0x51_46_49_fb;
export const QCOW2_VERSION = 3;
export const HEADER_LENGTH = 104;
/** The offsets of the fields of the header. */
export const HEADER = {
  magic: 0,
  version: 4,
  clusterBits: 20,
  virtualBytes: 24,
  l1Entries: 36,
  l1Offset: 40,
  refcountOffset: 48,
  refcountClusters: 56,
  refcountOrder: 96,
  headerLength: 100,
} as const;

/** Set in entries whose cluster is used once. */
export const COPIED = 1n << 63n;
/** Set in L2 entries of compressed clusters. */
export const COMPRESSED = 1n << 62n;
/** The position of the number of further sectors in the L2 entry of a compressed cluster. */
export const SECTORS_SHIFT = BigInt(62 - (CLUSTER_BITS - 8));

/** QEMU reads only this window or a smaller one. */
export const DEFLATE = { windowBits: 12, memLevel: 9 } as const;

/** A file in which the image is written and read at any position. */
export interface ImageFile {
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Throws if the file has fewer bytes. */
  read(bytes: number, at: number): Promise<Buffer>;
}

/** The content of an image that was written or read. Equal digests mean equal content. */
export interface ImageContent {
  readonly virtualBytes: number;
  /** The SHA-256 of the number and the data of each cluster that is not zero, in hex. */
  readonly digest: string;
}
