/**
 * The file format: its ids, its tables and the checksum of each row. A change that older code would misread increments
 * FORMAT.
 *
 * `log` is append-only except for compaction. `crc` covers the packed record (record-codec.ts), so it detects a change in
 * any column. `meta` has checksums as well.
 */
import { crc32 } from 'node:zlib';

/** "same" in ASCII. Distinguishes our files from those of other programs. */
export const APPLICATION_ID = 0x73616d65;
export const FORMAT = 1;
/** Measured: with 4096-byte pages, rows of 2 KB waste half a page; pages larger than this slow down single commits. */
export const PAGE_BYTES = 16_384;

export const CREATE_TABLES = `
  CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    id TEXT NOT NULL,
    type INTEGER NOT NULL,
    value BLOB NOT NULL,
    crc INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value INTEGER NOT NULL,
    crc INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

export const INSERT_RECORD = 'INSERT INTO log (revision, collection, id, type, value, crc) VALUES (?, ?, ?, ?, ?, ?)';
export const SELECT_RECORDS = 'SELECT revision, collection, id, type, value, crc FROM log ORDER BY revision';
export const SELECT_META = 'SELECT value, crc FROM meta WHERE key = ?';
export const SET_META = 'INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?, ?, ?)';
export const COMPACTED_REVISION = 'compactedRevision';

export function metaCrc(key: string, value: number): number {
  return crc32(`${key}=${value}`);
}
