/**
 * Writes batches to a store's file and, after an error, finds out what is really on disk.
 *
 *   open ──append fails──► look again ──► the batch is there after all: open, the append worked
 *                              ├───────► it is not: open, the append failed
 *                              └───────► cannot tell: closed, the append failed; the next one opens the file
 *                                        and removes what was reported as failed
 */
import { chmodSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { Unreachable } from './faults.ts';
import { COMPACTED_REVISION, INSERT_RECORD, metaCrc, SET_META } from './format.ts';
import { readCompactedRevision } from './log-reader.ts';
import { Unpacker } from './record-codec.ts';

/** 8 MiB: a checkpoint then stalls writes for about 10 ms; less often would stall longer. */
const CHECKPOINT_PAGES = 512;
const NO_PAGE_LIMIT = 0xfffffffe;

interface OpenFile {
  readonly db: DatabaseSync;
  readonly insert: StatementSync;
  readonly remove: StatementSync;
}

export class LogWriter {
  readonly #file: string;
  #open: OpenFile | undefined;
  #maxPages = NO_PAGE_LIMIT;

  constructor(file: string) {
    this.#file = file;
  }

  /** Takes the file for this process alone. Its newest revision must be `expected`, else somebody else wrote to it. */
  open(expected: number): void {
    if ((statSync(this.#file).mode & 0o077) !== 0) chmodSync(this.#file, 0o600);
    const open = this.#openFile();
    const newest = newestRevision(open.db, this.#file);
    if (newest !== expected) {
      open.db.close();
      throw new Unreachable(
        `Cannot open ${this.#file}: its newest revision is ${newest}; expected ${expected}, as it was a moment ago`,
      );
    }
    this.#open = open;
  }

  /** All of `packed` or nothing. `after` is the last revision that was reported as written, `last` that of the batch. */
  append(packed: Buffer, { after, last }: { after: number; last: number }): void {
    const open = (this.#open ??= this.#reopen(after));
    try {
      open.db.exec('BEGIN IMMEDIATE');
      const unpacker = new Unpacker(packed);
      while (!unpacker.done) {
        const { revision, collection, id, type, value, packed: record } = unpacker.next();
        open.insert.run(revision, collection, id, type, value, crc32(record));
      }
      this.commit(open.db);
    } catch (error) {
      this.#discard(open);
      if (!this.#landed(last)) throw error;
    }
  }

  /** One transaction. Not after a failed append: the next append looks at the file first. */
  compact(revision: number, removable: Float64Array): void {
    const open = this.#open;
    if (!open) throw new Unreachable(`Cannot compact ${this.#file}: the last write failed`);
    try {
      open.db.exec('BEGIN IMMEDIATE');
      for (const old of removable) open.remove.run(old);
      open.db.prepare(SET_META).run(COMPACTED_REVISION, revision, metaCrc(COMPACTED_REVISION, revision));
      open.db.exec('COMMIT');
    } catch (error) {
      this.#discard(open);
      throw error;
    }
  }

  limitPages(pages: number): void {
    this.#maxPages = pages === 0 ? NO_PAGE_LIMIT : pages;
    this.#open?.db.exec(`PRAGMA max_page_count = ${this.#maxPages}`);
  }

  /** Into an empty file: all that is committed, in one piece, without a log beside it. */
  copy(to: string): void {
    const open = this.#open;
    if (!open) throw new Unreachable(`Cannot copy ${this.#file}: the last write failed`);
    open.db.prepare('VACUUM INTO ?').run(to);
  }

  close(): void {
    this.#open?.db.close();
    this.#open = undefined;
  }

  /** Apart, so that a test can lose its answer. */
  protected commit(db: DatabaseSync): void {
    db.exec('COMMIT');
  }

  #openFile(): OpenFile {
    // Never makes a file: one that vanished is a fault, not an empty store.
    const db = new DatabaseSync(`${pathToFileURL(this.#file).href}?mode=rw`);
    try {
      db.exec(`
        PRAGMA locking_mode = EXCLUSIVE;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
        PRAGMA max_page_count = ${this.#maxPages};
      `);
      // The lock is taken by the first transaction, not by the pragma.
      db.exec('BEGIN IMMEDIATE; COMMIT');
      return {
        db,
        insert: db.prepare(INSERT_RECORD),
        remove: db.prepare('DELETE FROM log WHERE revision = ?'),
      };
    } catch (error) {
      db.close();
      throw error;
    }
  }

  #reopen(after: number): OpenFile {
    const open = this.#openFile();
    try {
      const newest = newestRevision(open.db, this.#file);
      if (newest < after) throw new Unreachable(`Cannot write to ${this.#file}: it lost the revisions after ${newest}`);
      open.db.prepare('DELETE FROM log WHERE revision > ?').run(after);
      return open;
    } catch (error) {
      open.db.close();
      throw error;
    }
  }

  /** Whether a commit that reported an error is on disk nevertheless, for good. */
  #landed(last: number): boolean {
    let open: OpenFile | undefined;
    try {
      open = this.#openFile();
      const landed = newestRevision(open.db, this.#file) === last;
      if (landed) checkpoint(open.db, this.#file);
      this.#open = open;
      return landed;
    } catch {
      if (open) this.#discard(open);
      return false;
    }
  }

  #discard(open: OpenFile): void {
    this.#open = undefined;
    try {
      if (open.db.isTransaction) open.db.exec('ROLLBACK');
    } catch {
      // Closing rolls back too.
    }
    open.db.close();
  }
}

/** Rows may all be compacted away, never past the compacted revision: the larger of the two was the last one given. */
function newestRevision(db: DatabaseSync, file: string): number {
  const { newest } = db.prepare('SELECT MAX(revision) AS newest FROM log').get() as { newest: number | null };
  return Math.max(newest ?? 0, readCompactedRevision(db, file));
}

/**
 * Copies the write-ahead log into the file and syncs it. A log whose sync once failed may read back fine from the page
 * cache without being on disk; what was copied and synced anew is.
 */
function checkpoint(db: DatabaseSync, file: string): void {
  const result = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
  if (result.busy !== 0) throw new Unreachable(`Cannot write to ${file}: its log cannot be copied`);
}
