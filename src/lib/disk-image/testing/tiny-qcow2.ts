/** Builds small qcow2 images with tables of any size, which QEMU would not write. Pure. */

const TABLE_ENTRY_BYTES = 8;
const COMPRESSED = 1n << 62n;

interface ImageShape {
  readonly clusterBits: number;
  readonly l1Entries: number;
  /** The number of entries of the L1 table that share the only L2 table. */
  readonly shared: number;
  readonly isCompressed: boolean;
  readonly features: bigint;
}

/** Returns an image with one L2 table and one cluster of data: header, refcounts, L2, data, L1. */
export function aTinyQcow2({ clusterBits, l1Entries, shared, isCompressed, features }: ImageShape): Buffer {
  const cluster = 2 ** clusterBits;
  const l1Bytes = l1Entries * TABLE_ENTRY_BYTES;
  const image = Buffer.alloc(5 * cluster + l1Bytes);
  image.writeUInt32BE(0x51_46_49_fb, 0);
  image.writeUInt32BE(3, 4);
  image.writeUInt32BE(clusterBits, 20);
  image.writeBigUInt64BE(BigInt(l1Entries) * BigInt(cluster * (cluster / TABLE_ENTRY_BYTES)), 24);
  image.writeUInt32BE(l1Entries, 36);
  image.writeBigUInt64BE(BigInt(5 * cluster), 40);
  image.writeBigUInt64BE(BigInt(cluster), 48);
  image.writeUInt32BE(1, 56);
  image.writeBigUInt64BE(features, 72);
  image.writeUInt32BE(104, 100);
  image.writeBigUInt64BE(BigInt(2 * cluster), cluster);
  image.writeBigUInt64BE(isCompressed ? COMPRESSED | BigInt(4 * cluster) : BigInt(4 * cluster), 3 * cluster);
  for (let i = 0; i < shared; i++) image.writeBigUInt64BE(BigInt(3 * cluster), 5 * cluster + i * TABLE_ENTRY_BYTES);
  return image;
}
