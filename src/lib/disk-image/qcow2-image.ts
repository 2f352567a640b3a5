/**
 * Reads and checks qcow2 images of any writer. Images with a backing file, external data or encryption must be refused
 * before. The check finds tables and data that are not in the file: hypervisors read zeros there without an error.
 *
 *   header ─► L1 table ─► L2 tables ─► clusters of data, some of them compressed
 *        └──► refcount table ─► refcount blocks
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { readExactly, type ByteSource } from '#lib/disk-image/byte-source.ts';

const inflate = promisify<Buffer, object, Buffer>(inflateRaw);

const HEADER_BYTES = 112;
const MIN_CLUSTER_BITS = 9;
const MAX_CLUSTER_BITS = 21;
/** The limits of QEMU. */
const MAX_L1_BYTES = 32 * 1024 * 1024;
const MAX_REFCOUNT_TABLE_BYTES = 8 * 1024 * 1024;
const SECTOR = 512;
/** The entries of tables that are checked in one turn of the event loop. */
const ENTRIES_PER_TURN = 32 * 1024;

/** Bits of the incompatible features. */
const CORRUPT = 1n << 1n;
const COMPRESSION_TYPE = 1n << 3n;
const EXTENDED_L2 = 1n << 4n;
const KNOWN_FEATURES = 0b1_1111n;
const DEFLATE = 0;

/** Bits of table entries. */
const OFFSET_MASK = 0x00ff_ffff_ffff_fe00n;
const COMPRESSED = 1n << 62n;
const READS_ZEROS = 1n;

/** The image is damaged, incomplete, or uses a feature that is not known. The message begins with "it" or "its". */
export class DamagedImageError extends Error {
  override name = 'DamagedImageError';

  constructor(message: string, { advice = 'download or copy it again', ...options }: DamageOptions = {}) {
    super(`${message}; ${advice}`, options);
  }
}

interface DamageOptions extends ErrorOptions {
  readonly advice?: string;
}

/** The parts of a disk that have data: the size of their clusters after decompression. */
export interface Qcow2Data {
  readonly plainBytes: number;
  readonly compressedBytes: number;
}

/** Returns the space that the disk needs as raw. `allocatedBytes` is the space of the file: zeros may be allocated. */
export function convertedBytes({ plainBytes, compressedBytes }: Qcow2Data, allocatedBytes: number): number {
  return compressedBytes + Math.min(plainBytes, allocatedBytes);
}

/** The disk inside a qcow2 image, as a guest sees it. */
export class Qcow2Image implements ByteSource {
  readonly size: number;
  readonly #file: ByteSource;
  readonly #header: Qcow2Header;
  readonly #l1: Buffer;

  private constructor(file: ByteSource, header: Qcow2Header, l1: Buffer) {
    [this.#file, this.#header, this.#l1] = [file, header, l1];
    this.size = header.virtualBytes;
  }

  /** Reads the header and the first table. Throws DamagedImageError. Returns undefined if the table is not known. */
  static async open(file: ByteSource): Promise<Qcow2Image | undefined> {
    const bytes = await file.read(HEADER_BYTES, 0);
    if (bytes === undefined) return undefined;
    const header = parseHeader(bytes);
    const { l1Offset, l1Entries, refcountOffset, refcountClusters, clusterBytes } = header;
    requireInFile(file, 'its L1 table', l1Offset, l1Entries * 8);
    requireInFile(file, 'its refcount table', refcountOffset, refcountClusters * clusterBytes);
    const l1 = await readExactly(file, l1Entries * 8, l1Offset);
    return l1 && new Qcow2Image(file, header, l1);
  }

  /** Returns zeros for clusters without data. Returns undefined if the format of a cluster is not supported. */
  async read(length: number, at: number): Promise<Buffer | undefined> {
    const { clusterBytes } = this.#header;
    const end = Math.min(at + length, this.size);
    const pieces: Buffer[] = [];
    for (let from = at; from < end;) {
      const start = from % clusterBytes;
      const piece = await this.#cluster(Math.floor(from / clusterBytes));
      if (piece === undefined) return undefined;
      const part = piece.subarray(start, Math.min(clusterBytes, start + end - from));
      pieces.push(part);
      from += part.length;
    }
    return Buffer.concat(pieces);
  }

  /**
   * Reads all tables of the disk and returns the amount of data. Throws DamagedImageError if a table or data is not in the
   * file. Tables that are not known count as good and without data. So do L1 entries after the end of the disk: their
   * number has no relation to its size.
   */
  async check(): Promise<Qcow2Data> {
    await this.#checkRefcounts();
    const { clusterBytes, l2Entries, l2EntryBytes } = this.#header;
    const data = { plainBytes: 0, compressedBytes: 0 };
    let tables = 0;
    for (let part = 0; part * l2Entries * clusterBytes < this.size; part++) {
      if (part % ENTRIES_PER_TURN === 0) await nextTurn();
      if (offsetAt(this.#l1, part) === 0) continue;
      // Each table is used once. Otherwise a small file could make us read one table millions of times.
      if (++tables * clusterBytes > this.#file.size) {
        throw new DamagedImageError('its L1 table has more entries than the file has clusters');
      }
      const table = await this.#l2Table(part);
      for (let i = 0; table !== undefined && i < l2Entries; i++) {
        if (i % ENTRIES_PER_TURN === 0) await nextTurn();
        const at = (part * l2Entries + i) * clusterBytes;
        if (at >= this.size) break;
        const entry = table.readBigUInt64BE(i * l2EntryBytes);
        const stored = this.#dataOf(entry, at);
        if (stored === undefined) continue;
        requireInFile(this.#file, `its data for offset ${at} of the disk`, stored.offset, stored.bytes);
        data[(entry & COMPRESSED) === 0n ? 'plainBytes' : 'compressedBytes'] += clusterBytes;
      }
    }
    return data;
  }

  async #checkRefcounts(): Promise<void> {
    const { refcountOffset, refcountClusters, clusterBytes } = this.#header;
    const table = await readExactly(this.#file, refcountClusters * clusterBytes, refcountOffset);
    for (let i = 0; table !== undefined && i * 8 < table.length; i++) {
      if (i % ENTRIES_PER_TURN === 0) await nextTurn();
      const offset = offsetAt(table, i);
      if (offset !== 0) requireInFile(this.#file, 'a refcount block', offset, clusterBytes);
    }
  }

  /** Returns the bytes of the file that must exist for an entry, or undefined if there are none. */
  #dataOf(entry: bigint, at: number): { readonly offset: number; readonly bytes: number } | undefined {
    if ((entry & COMPRESSED) !== 0n) {
      const { offset, bytes } = this.#compressedData(entry);
      // The file may end within the last sector.
      return { offset, bytes: Math.max(1, bytes - SECTOR + 1) };
    }
    const { clusterBytes, hasExtendedL2 } = this.#header;
    const offset = Number(entry & OFFSET_MASK);
    if (offset === 0 || (entry & READS_ZEROS) !== 0n) return undefined;
    // With subclusters, a part of the cluster may never have been written.
    return { offset, bytes: hasExtendedL2 ? 0 : Math.min(clusterBytes, this.size - at) };
  }

  #compressedData(entry: bigint): { readonly offset: number; readonly bytes: number } {
    const shift = BigInt(62 - (this.#header.clusterBits - 8));
    const offset = Number(entry & ((1n << shift) - 1n));
    const sectors = Number((entry & (COMPRESSED - 1n)) >> shift) + 1;
    return { offset, bytes: sectors * SECTOR - (offset % SECTOR) };
  }

  /** Returns undefined if the part has no table, or if it is not known. Throws DamagedImageError. */
  async #l2Table(part: number): Promise<Buffer | undefined> {
    const offset = offsetAt(this.#l1, part);
    if (offset === 0) return undefined;
    const { clusterBytes } = this.#header;
    if (offset % clusterBytes !== 0) throw new DamagedImageError(`its L1 table has an invalid entry ${part}`);
    requireInFile(this.#file, `its L2 table ${part}`, offset, clusterBytes);
    return await readExactly(this.#file, clusterBytes, offset);
  }

  async #cluster(index: number): Promise<Buffer | undefined> {
    const { clusterBytes, l2Entries, l2EntryBytes, hasExtendedL2, compression } = this.#header;
    const part = Math.floor(index / l2Entries);
    const zeros = Buffer.alloc(clusterBytes);
    if (offsetAt(this.#l1, part) === 0) return zeros;
    const entry = (await this.#l2Table(part))?.readBigUInt64BE((index % l2Entries) * l2EntryBytes);
    if (entry === undefined || hasExtendedL2) return undefined;
    if ((entry & COMPRESSED) === 0n) {
      const offset = Number(entry & OFFSET_MASK);
      if (offset === 0 || (entry & READS_ZEROS) !== 0n) return zeros;
      const found = await this.#file.read(clusterBytes, offset);
      return found && Buffer.concat([found, zeros], clusterBytes);
    }
    const { offset, bytes } = this.#compressedData(entry);
    const packed = compression === DEFLATE ? await this.#file.read(bytes, offset) : undefined;
    if (packed === undefined) return undefined;
    const cluster = await inflate(packed, { maxOutputLength: clusterBytes }).catch((cause: unknown) => {
      throw new DamagedImageError(`its compressed data at offset ${offset} cannot be read`, { cause });
    });
    return Buffer.concat([cluster, zeros], clusterBytes);
  }
}

/** Returns the offset in an entry of a table. Without BigInt, because tables have millions of entries. */
function offsetAt(table: Buffer, index: number): number {
  const [high, low] = [table.readUInt32BE(index * 8), table.readUInt32BE(index * 8 + 4)];
  return (high & 0x00ff_ffff) * 2 ** 32 + (low - (low % SECTOR));
}

interface Qcow2Header {
  readonly virtualBytes: number;
  readonly clusterBits: number;
  readonly clusterBytes: number;
  readonly l1Entries: number;
  readonly l1Offset: number;
  readonly l2Entries: number;
  readonly l2EntryBytes: number;
  readonly refcountOffset: number;
  readonly refcountClusters: number;
  readonly hasExtendedL2: boolean;
  readonly compression: number;
}

function parseHeader(bytes: Buffer): Qcow2Header {
  // The rest of a short header of version 2 reads as zeros.
  const header = Buffer.concat([bytes, Buffer.alloc(HEADER_BYTES)], HEADER_BYTES);
  const isVersion3 = header.readUInt32BE(4) >= 3;
  const features = isVersion3 ? header.readBigUInt64BE(72) : 0n;
  if ((features & CORRUPT) !== 0n) {
    throw new DamagedImageError('it is marked as corrupt', { advice: 'repair it with "qemu-img check -r all"' });
  }
  if (features > KNOWN_FEATURES) {
    const advice = 'convert it with "qemu-img convert -O qcow2"';
    throw new DamagedImageError('it uses a feature of qcow2 that is not known', { advice });
  }
  const clusterBits = header.readUInt32BE(20);
  if (clusterBits < MIN_CLUSTER_BITS || clusterBits > MAX_CLUSTER_BITS) {
    throw new DamagedImageError(`its header has an invalid cluster size: 2^${clusterBits} bytes`);
  }
  const hasExtendedL2 = (features & EXTENDED_L2) !== 0n;
  const clusterBytes = 2 ** clusterBits;
  const l2EntryBytes = hasExtendedL2 ? 16 : 8;
  const l2Entries = clusterBytes / l2EntryBytes;
  const virtualBytes = Number(header.readBigUInt64BE(24));
  const l1Entries = header.readUInt32BE(36);
  const needed = Math.ceil(virtualBytes / (clusterBytes * l2Entries));
  if (l1Entries < needed || l1Entries * 8 > MAX_L1_BYTES) {
    throw new DamagedImageError(
      `its header has an L1 table of ${l1Entries} entries; a disk of ${virtualBytes} bytes needs ${needed}`,
    );
  }
  const refcountClusters = header.readUInt32BE(56);
  if (refcountClusters * clusterBytes > MAX_REFCOUNT_TABLE_BYTES + clusterBytes) {
    throw new DamagedImageError(`its header has a refcount table of ${refcountClusters} clusters`);
  }
  return {
    ...{ virtualBytes, clusterBits, clusterBytes, l1Entries, l2Entries, l2EntryBytes, refcountClusters, hasExtendedL2 },
    l1Offset: Number(header.readBigUInt64BE(40)),
    refcountOffset: Number(header.readBigUInt64BE(48)),
    compression: (features & COMPRESSION_TYPE) === 0n ? DEFLATE : header.readUInt8(104),
  };
}

function requireInFile({ size }: ByteSource, what: string, offset: number, bytes: number): void {
  if (offset + bytes <= size) return;
  throw new DamagedImageError(
    `it is incomplete: ${what} ends at byte ${offset + bytes}, and the file has ${size} bytes`,
  );
}
