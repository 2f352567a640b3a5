/**
 * Encodes records as bytes, for the transfer between the main thread and the worker and for the CRC-32 of each row.
 * Packed records follow each other without padding.
 *
 *   revision f64 | value length u32 | collection length u16 | id length u16 | type u8 | collection | id | value
 */
import { invariant } from '#lib/invariant.ts';
import type { LogRecord } from '#engine/store/journal.ts';

const HEADER_BYTES = 17;
const MAX_KEY_BYTES = 0xffff;
const TYPES = ['put', 'delete'] as const;

export interface PackedFields {
  readonly revision: number;
  readonly collection: string;
  readonly id: string;
  /** Index into TYPES, as stored in the file. */
  readonly type: number;
  readonly value: Uint8Array;
}

export function typeNumber(type: LogRecord['type']): number {
  return TYPES.indexOf(type);
}

/** Returns an upper bound for the packed size of a record: a UTF-16 unit takes at most three bytes. */
export function maxPackedBytes(fields: Pick<PackedFields, 'collection' | 'id' | 'value'>): number {
  return HEADER_BYTES + 3 * (fields.collection.length + fields.id.length) + fields.value.length;
}

/** Returns the offset after the record. */
export function pack(target: Buffer, offset: number, fields: PackedFields): number {
  const keys = offset + HEADER_BYTES;
  const collectionBytes = target.write(fields.collection, keys);
  const idBytes = target.write(fields.id, keys + collectionBytes);
  invariant(
    collectionBytes <= MAX_KEY_BYTES && idBytes <= MAX_KEY_BYTES,
    'collection and id fit into their length fields',
  );
  target.writeDoubleLE(fields.revision, offset);
  target.writeUInt32LE(fields.value.length, offset + 8);
  target.writeUInt16LE(collectionBytes, offset + 12);
  target.writeUInt16LE(idBytes, offset + 14);
  target.writeUInt8(fields.type, offset + 16);
  const value = keys + collectionBytes + idBytes;
  target.set(fields.value, value);
  return value + fields.value.length;
}

/** Iterates over packed records. `value` and `packed` are views that stay valid. */
export class Unpacker {
  readonly #source: Buffer;
  #offset = 0;
  #collection = '';

  constructor(source: Buffer) {
    this.#source = source;
  }

  get done(): boolean {
    return this.#offset >= this.#source.length;
  }

  next(): PackedFields & { readonly packed: Buffer } {
    const source = this.#source;
    const start = this.#offset;
    const collectionStart = start + HEADER_BYTES;
    const idStart = collectionStart + source.readUInt16LE(start + 12);
    const valueStart = idStart + source.readUInt16LE(start + 14);
    const end = valueStart + source.readUInt32LE(start + 8);
    invariant(end <= source.length, 'a packed record is complete');
    this.#offset = end;
    return {
      revision: source.readDoubleLE(start),
      collection: this.#internCollection(source.toString('utf8', collectionStart, idStart)),
      id: source.toString('utf8', idStart, valueStart),
      type: source.readUInt8(start + 16),
      value: source.subarray(valueStart, end),
      packed: source.subarray(start, end),
    };
  }

  /** Neighbouring records mostly share their collection, so they share one string. */
  #internCollection(collection: string): string {
    if (collection !== this.#collection) this.#collection = collection;
    return this.#collection;
  }
}

/** Unpacks entries whose bytes are copies, so that none of them keeps `source` alive. */
export function unpackRecords(source: Buffer): LogRecord[] {
  const records: LogRecord[] = [];
  const unpacker = new Unpacker(source);
  while (!unpacker.done) {
    const { revision, collection, id, type, value } = unpacker.next();
    const bytes = Buffer.allocUnsafeSlow(value.length);
    bytes.set(value);
    records.push({ type: TYPES[type]!, entry: { collection, id, revision, bytes } });
  }
  return records;
}
