/**
 * Reads and checks all rows of a store's file. Opens it read-only, so a damaged file is not modified. Writing starts
 * only after the reader reached the end (log-writer.ts).
 */
import { existsSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { FileDamagedError, isDiskFullOrIoError } from '#engine/store/sqlite/file-errors.ts';
import { sizeOf } from '#engine/store/sqlite/file-check.ts';
import { COMPACTED_REVISION, metaCrc, SELECT_META, SELECT_RECORDS } from '#engine/store/sqlite/format.ts';
import { pack, maxPackedBytes } from '#engine/store/sqlite/record-codec.ts';
import type { PackedFields } from '#engine/store/sqlite/record-codec.ts';
import { checkWal } from '#engine/store/sqlite/wal-check.ts';

type Row = [revision: number, collection: string, id: string, type: number, value: Uint8Array, crc: number];

export class LogReader {
  readonly #file: string;
  readonly #hadWal: boolean;
  readonly #hadShm: boolean;
  #db: DatabaseSync | undefined;
  #rows: Iterator<unknown> | undefined;
  /** A row that was read but did not fit into the last chunk. */
  #held: Row | undefined;
  readonly compactedRevision: number;
  newestRevision: number;

  /** Throws FileDamagedError or an error of SQLite. */
  constructor(file: string) {
    this.#file = file;
    this.#hadWal = existsSync(`${file}-wal`);
    this.#hadShm = existsSync(`${file}-shm`);
    try {
      const db = (this.#db = openForReading(file));
      checkWal(file);
      quickCheck(db, file);
      this.compactedRevision = readCompactedRevision(db, file);
      this.newestRevision = this.compactedRevision;
      const select = db.prepare(SELECT_RECORDS);
      select.setReturnArrays(true);
      this.#rows = select.iterate();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Packs the next records into `target`, or into a separate block if the first one does not fit there. */
  readChunk(target: Buffer): { length: number; packed?: ArrayBuffer } | undefined {
    let row = this.#held ?? this.#nextRow();
    this.#held = undefined;
    if (!row) return undefined;
    const room = maxPackedBytes(fieldsOf(row));
    if (room > target.length) {
      const packed = new ArrayBuffer(room);
      return { packed, length: this.#packChecked(Buffer.from(packed), 0, row) };
    }
    let length = 0;
    while (row && length + maxPackedBytes(fieldsOf(row)) <= target.length) {
      length = this.#packChecked(target, length, row);
      row = this.#nextRow();
    }
    this.#held = row;
    return { length };
  }

  /** Removes the files that SQLite created only for reading. */
  close(): void {
    this.#db?.close();
    if (!this.#hadShm) rmSync(`${this.#file}-shm`, { force: true });
    if (!this.#hadWal && sizeOf(`${this.#file}-wal`) === 0) rmSync(`${this.#file}-wal`, { force: true });
  }

  #nextRow(): Row | undefined {
    const { done, value } = this.#rows!.next();
    return done ? undefined : (value as Row);
  }

  #packChecked(target: Buffer, offset: number, row: Row): number {
    const [revision, , , type, , crc] = row;
    const end = pack(target, offset, fieldsOf(row));
    if (crc32(target.subarray(offset, end)) !== crc || type < 0 || type > 1) {
      throw new FileDamagedError(this.#file, `the row of revision ${revision} does not match its checksum`);
    }
    this.newestRevision = Math.max(this.newestRevision, revision);
    return end;
  }
}

/**
 * Opens the file for reading. Fails if another process uses it, because its log would change while it is checked. A
 * read-only connection needs some disk space for its -shm file. On a full disk the file is opened for writing instead,
 * which needs none; closing may then copy the log into the file, but changes nothing else.
 */
function openForReading(file: string): DatabaseSync {
  try {
    return openWith(new DatabaseSync(file, { readOnly: true }), 'PRAGMA schema_version');
  } catch (error) {
    if (!isDiskFullOrIoError(error)) throw error;
    return openWith(new DatabaseSync(file), 'PRAGMA locking_mode = EXCLUSIVE; PRAGMA schema_version');
  }
}

function openWith(db: DatabaseSync, sql: string): DatabaseSync {
  try {
    db.exec(sql);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function quickCheck(db: DatabaseSync, file: string): void {
  const [first] = db.prepare('PRAGMA quick_check(1)').all();
  const found = String(first?.['quick_check']);
  if (found !== 'ok') throw new FileDamagedError(file, `it is damaged (${found.replaceAll('\n', ' ')})`);
}

/** Returns the compacted revision. Throws FileDamagedError if it is missing or does not match its checksum. */
export function readCompactedRevision(db: DatabaseSync, file: string): number {
  const row = db.prepare(SELECT_META).get(COMPACTED_REVISION) as { value: number; crc: number } | undefined;
  if (!row || row.crc !== metaCrc(COMPACTED_REVISION, row.value)) {
    throw new FileDamagedError(file, 'its compacted revision does not match its checksum');
  }
  return row.value;
}

function fieldsOf([revision, collection, id, type, value]: Row): PackedFields {
  return { revision, collection, id, type, value };
}
