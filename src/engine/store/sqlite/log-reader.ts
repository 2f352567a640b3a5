/**
 * Reads a store's file from the first row to the last and checks each. Opens it read-only: a file that turns out to be
 * damaged is left as it was found. Writing starts only after this has come to the end (log-writer.ts).
 */
import { existsSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { Damage, isRoomOrDiskFault } from './faults.ts';
import { sizeOf } from './file-check.ts';
import { COMPACTED_REVISION, metaCrc, SELECT_META, SELECT_RECORDS } from './format.ts';
import { pack, roomFor } from './record-codec.ts';
import type { PackedFields } from './record-codec.ts';
import { checkWal } from './wal-check.ts';

type Row = [revision: number, collection: string, id: string, type: number, value: Uint8Array, crc: number];

export class LogReader {
  readonly #file: string;
  readonly #hadWal: boolean;
  readonly #hadShm: boolean;
  #db: DatabaseSync | undefined;
  #rows: Iterator<unknown> | undefined;
  /** Read, but did not fit into the chunk any more. */
  #held: Row | undefined;
  readonly compactedRevision: number;
  newestRevision: number;

  /** Throws Damage or SQLite's error. */
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

  /** Packs the next records: into `target`, or into a block of its own when the first one does not fit there. */
  readChunk(target: Buffer): { length: number; packed?: ArrayBuffer } | undefined {
    let row = this.#held ?? this.#nextRow();
    this.#held = undefined;
    if (!row) return undefined;
    const room = roomFor(fieldsOf(row));
    if (room > target.length) {
      const packed = new ArrayBuffer(room);
      return { packed, length: this.#packChecked(Buffer.from(packed), 0, row) };
    }
    let length = 0;
    while (row && length + roomFor(fieldsOf(row)) <= target.length) {
      length = this.#packChecked(target, length, row);
      row = this.#nextRow();
    }
    this.#held = row;
    return { length };
  }

  /** Removes what SQLite put beside the file only for reading it. */
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
      throw new Damage(this.#file, `the row of revision ${revision} does not fit its checksum`);
    }
    this.newestRevision = Math.max(this.newestRevision, revision);
    return end;
  }
}

/**
 * Fails when another process has the file, before anything of it is judged: its log changes under our hands.
 * A read-only connection needs a little room beside the file for its -shm. On a full disk it is opened for writing
 * instead, which can do without; then closing may copy the log into the file, but nothing that is not in the log.
 */
function openForReading(file: string): DatabaseSync {
  try {
    return touched(new DatabaseSync(file, { readOnly: true }), 'PRAGMA schema_version');
  } catch (error) {
    if (!isRoomOrDiskFault(error)) throw error;
    return touched(new DatabaseSync(file), 'PRAGMA locking_mode = EXCLUSIVE; PRAGMA schema_version');
  }
}

function touched(db: DatabaseSync, sql: string): DatabaseSync {
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
  if (found !== 'ok') throw new Damage(file, `it is damaged (${found.replaceAll('\n', ' ')})`);
}

/** Throws Damage when it is not there or was changed. */
export function readCompactedRevision(db: DatabaseSync, file: string): number {
  const row = db.prepare(SELECT_META).get(COMPACTED_REVISION) as { value: number; crc: number } | undefined;
  if (!row || row.crc !== metaCrc(COMPACTED_REVISION, row.value)) {
    throw new Damage(file, 'its compacted revision does not fit its checksum');
  }
  return row.value;
}

function fieldsOf([revision, collection, id, type, value]: Row): PackedFields {
  return { revision, collection, id, type, value };
}
