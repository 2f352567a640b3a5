/** Reads back the qcow2 images of write-qcow2.ts, to check them. Other images are refused. */
import { createHash, type Hash } from 'node:crypto';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { FileFormatError } from '#formats/findings.ts';
import {
  CLUSTER,
  CLUSTER_BITS,
  COMPRESSED,
  COPIED,
  DEFLATE,
  HEADER,
  MAGIC,
  SECTOR,
  SECTORS_SHIFT,
  TABLE_ENTRIES,
  QCOW2_VERSION,
  type ImageContent,
  type ImageFile,
} from '#formats/qcow2/layout.ts';

const inflate = promisify<Buffer, object, Buffer>(inflateRaw);
const ADDRESS = (1n << SECTORS_SHIFT) - 1n;

/** Adds a cluster that is not zero to a digest. */
export function hashCluster(hash: Hash, index: number, cluster: Uint8Array): void {
  hash.update(`${index}\n`).update(cluster);
}

/** Reads the whole image. Throws a FileFormatError if it is damaged. */
export async function readQcow2(file: Pick<ImageFile, 'read'>): Promise<ImageContent> {
  const header = await file.read(CLUSTER, 0);
  const isOurs =
    header.readUInt32BE(HEADER.magic) === MAGIC &&
    header.readUInt32BE(HEADER.version) === QCOW2_VERSION &&
    header.readUInt32BE(HEADER.clusterBits) === CLUSTER_BITS;
  if (!isOurs) throw new FileFormatError('read qcow2', ['it is not an image that Selfsame wrote']);
  const virtualBytes = Number(header.readBigUInt64BE(HEADER.virtualBytes));
  const l1Offset = Number(header.readBigUInt64BE(HEADER.l1Offset));
  const l1 = await file.read(header.readUInt32BE(HEADER.l1Entries) * 8, l1Offset);
  const hash = createHash('sha256');
  for (let part = 0; part * 8 < l1.length; part++) {
    const offset = l1.readBigUInt64BE(part * 8);
    if (offset === 0n) continue;
    const table = await file.read(CLUSTER, Number(offset & ~COPIED));
    for (let i = 0; i < TABLE_ENTRIES; i++) {
      const entry = table.readBigUInt64BE(i * 8);
      if (entry !== 0n) hashCluster(hash, part * TABLE_ENTRIES + i, await readCluster(file, entry));
    }
  }
  return { virtualBytes, digest: hash.digest('hex') };
}

async function readCluster(file: Pick<ImageFile, 'read'>, entry: bigint): Promise<Buffer> {
  if ((entry & COMPRESSED) === 0n) return await file.read(CLUSTER, Number(entry & ~COPIED));
  const at = Number(entry & ADDRESS);
  const sectors = Number((entry & ~COMPRESSED) >> SECTORS_SHIFT) + 1;
  try {
    const packed = await file.read(sectors * SECTOR - (at % SECTOR), at);
    return await inflate(packed, { windowBits: DEFLATE.windowBits, maxOutputLength: CLUSTER });
  } catch (cause) {
    throw new FileFormatError('read qcow2', [`the compressed data at ${at} is damaged`], { cause });
  }
}
