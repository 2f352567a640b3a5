/** Writes a compressed qcow2 image from the bytes of a raw disk, in one pass and without keeping the data in memory. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import {
  BLOCK_ENTRIES,
  CLUSTER,
  CLUSTER_BITS,
  COMPRESSED,
  COPIED,
  DEFLATE,
  HEADER,
  HEADER_LENGTH,
  MAGIC,
  SECTOR,
  SECTORS_SHIFT,
  TABLE_ENTRIES,
  QCOW2_VERSION,
  ZERO_CLUSTER,
  type ImageContent,
  type ImageFile,
} from '#formats/qcow2/layout.ts';
import { hashCluster } from '#formats/qcow2/read-qcow2.ts';

const deflate = promisify<Buffer, object, Buffer>(deflateRaw);

/** Clusters that are compressed at the same time. */
const PARALLEL = 8;
const REFCOUNT_ORDER = 4;

interface WrittenImage extends ImageContent {
  /** The size of the file. */
  readonly fileBytes: number;
}

/** Writes the whole image. The file must be empty. The disk ends with the chunks, rounded up to whole sectors. */
export async function writeQcow2(chunks: AsyncIterable<Uint8Array>, file: ImageFile): Promise<WrittenImage> {
  const image = new ImageWriter(file);
  const hash = createHash('sha256');
  const pending: { readonly index: number; readonly cluster: Buffer; readonly packed: Promise<Buffer> }[] = [];
  const storeFirst = async () => {
    const first = pending.shift();
    if (first !== undefined) await image.store(first.index, first.cluster, await first.packed);
  };
  let [index, bytes] = [0, 0];
  for await (const { cluster, length } of toClusters(chunks)) {
    bytes += length;
    if (!cluster.equals(ZERO_CLUSTER)) {
      hashCluster(hash, index, cluster);
      const packed = deflate(cluster, DEFLATE);
      // An error is reported when the cluster is stored.
      packed.catch(() => {});
      pending.push({ index, cluster, packed });
      if (pending.length >= PARALLEL) await storeFirst();
    }
    index++;
  }
  while (pending.length > 0) await storeFirst();
  const virtualBytes = Math.ceil(bytes / SECTOR) * SECTOR;
  return { virtualBytes, digest: hash.digest('hex'), fileBytes: await image.finish(virtualBytes) };
}

/** Yields whole clusters. The last one is filled with zeros; `length` is the part that is data. */
async function* toClusters(chunks: AsyncIterable<Uint8Array>) {
  let cluster = Buffer.alloc(CLUSTER);
  let length = 0;
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length;) {
      const piece = chunk.subarray(from, from + CLUSTER - length);
      cluster.set(piece, length);
      from += piece.length;
      length += piece.length;
      if (length < CLUSTER) continue;
      yield { cluster, length };
      cluster = Buffer.alloc(CLUSTER);
      length = 0;
    }
  }
  if (length > 0) yield { cluster, length };
}

class ImageWriter {
  readonly #file: ImageFile;
  readonly #refcounts = new Refcounts();
  /** The offset of the L2 table by its index. */
  readonly #l1 = new Map<number, number>();
  #l2: { readonly index: number; readonly table: Buffer } | undefined;
  /** The end of the file: the next free cluster. */
  #end = CLUSTER;
  /** The place for the next compressed cluster, inside a host cluster. */
  #free: number | undefined;

  constructor(file: ImageFile) {
    this.#file = file;
    this.#refcounts.add(0, CLUSTER);
  }

  /** Stores a cluster of the disk. Clusters are stored in ascending order. */
  async store(index: number, cluster: Buffer, packed: Buffer): Promise<void> {
    const table = await this.#tableFor(Math.floor(index / TABLE_ENTRIES));
    const entry = packed.length < CLUSTER ? await this.#storePacked(packed) : COPIED | BigInt(await this.#add(cluster));
    table.writeBigUInt64BE(entry, (index % TABLE_ENTRIES) * 8);
  }

  async #tableFor(index: number): Promise<Buffer> {
    if (this.#l2?.index !== index) {
      await this.#flushTable();
      this.#l2 = { index, table: Buffer.alloc(CLUSTER) };
    }
    return this.#l2.table;
  }

  async #flushTable(): Promise<void> {
    if (this.#l2 !== undefined) this.#l1.set(this.#l2.index, await this.#add(this.#l2.table));
    this.#l2 = undefined;
  }

  /** Appends whole clusters and returns their offset. */
  async #add(bytes: Buffer): Promise<number> {
    const at = this.#end;
    this.#end += Math.ceil(bytes.length / CLUSTER) * CLUSTER;
    this.#refcounts.add(at, this.#end);
    await this.#file.write(bytes, at);
    return at;
  }

  /** Stores compressed data and returns its L2 entry. It continues in the next host cluster if that is at the end. */
  async #storePacked(packed: Buffer): Promise<bigint> {
    const left = this.#free === undefined ? 0 : CLUSTER - (this.#free % CLUSTER);
    const isLast = this.#free !== undefined && this.#free + left === this.#end;
    const at = this.#free !== undefined && (packed.length <= left || isLast) ? this.#free : this.#end;
    const end = at + packed.length;
    while (this.#end < end) this.#end += CLUSTER;
    this.#free = end % CLUSTER === 0 ? undefined : end;
    await this.#file.write(packed, at);
    const furtherSectors = Math.floor(((at % SECTOR) + packed.length - 1) / SECTOR);
    const start = at - (at % SECTOR);
    this.#refcounts.add(start, start + (furtherSectors + 1) * SECTOR);
    return COMPRESSED | (BigInt(furtherSectors) << SECTORS_SHIFT) | BigInt(at);
  }

  /** Writes the tables and the header. Returns the size of the file. */
  async finish(virtualBytes: number): Promise<number> {
    await this.#flushTable();
    const l1Entries = Math.max(1, Math.ceil(virtualBytes / (CLUSTER * TABLE_ENTRIES)));
    const l1 = Buffer.alloc(Math.ceil((l1Entries * 8) / CLUSTER) * CLUSTER);
    for (const [index, offset] of this.#l1) l1.writeBigUInt64BE(COPIED | BigInt(offset), index * 8);
    const l1Offset = await this.#add(l1);
    const { offset, clusters } = await this.#writeRefcounts();
    const header = Buffer.alloc(CLUSTER);
    header.writeUInt32BE(MAGIC, HEADER.magic);
    header.writeUInt32BE(QCOW2_VERSION, HEADER.version);
    header.writeUInt32BE(CLUSTER_BITS, HEADER.clusterBits);
    header.writeBigUInt64BE(BigInt(virtualBytes), HEADER.virtualBytes);
    header.writeUInt32BE(l1Entries, HEADER.l1Entries);
    header.writeBigUInt64BE(BigInt(l1Offset), HEADER.l1Offset);
    header.writeBigUInt64BE(BigInt(offset), HEADER.refcountOffset);
    header.writeUInt32BE(clusters, HEADER.refcountClusters);
    header.writeUInt32BE(REFCOUNT_ORDER, HEADER.refcountOrder);
    header.writeUInt32BE(HEADER_LENGTH, HEADER.headerLength);
    await this.#file.write(header, 0);
    return this.#end;
  }

  /** Writes the refcount table and its blocks, which also count themselves. */
  async #writeRefcounts(): Promise<{ readonly offset: number; readonly clusters: number }> {
    const used = this.#end / CLUSTER;
    let [blocks, clusters] = [1, 1];
    while (blocks * BLOCK_ENTRIES < used + clusters + blocks) {
      blocks++;
      clusters = Math.ceil((blocks * 8) / CLUSTER);
    }
    const offset = this.#end;
    const firstBlock = offset + clusters * CLUSTER;
    this.#end = firstBlock + blocks * CLUSTER;
    this.#refcounts.add(offset, this.#end);
    const table = Buffer.alloc(clusters * CLUSTER);
    for (let block = 0; block < blocks; block++) {
      table.writeBigUInt64BE(BigInt(firstBlock + block * CLUSTER), block * 8);
      await this.#file.write(this.#refcounts.block(block), firstBlock + block * CLUSTER);
    }
    await this.#file.write(table, offset);
    return { offset, clusters };
  }
}

/** Counts how often each host cluster is used. */
class Refcounts {
  readonly #blocks: Buffer[] = [];

  /** Counts the clusters of a range of the file. */
  add(from: number, to: number): void {
    for (let cluster = Math.floor(from / CLUSTER); cluster * CLUSTER < to; cluster++) {
      const block = this.block(Math.floor(cluster / BLOCK_ENTRIES));
      const at = (cluster % BLOCK_ENTRIES) * 2;
      block.writeUInt16BE(block.readUInt16BE(at) + 1, at);
    }
  }

  block(index: number): Buffer {
    while (this.#blocks.length <= index) this.#blocks.push(Buffer.alloc(CLUSTER));
    return this.#blocks[index] ?? ZERO_CLUSTER;
  }
}
