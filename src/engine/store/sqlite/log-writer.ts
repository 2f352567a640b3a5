/**
 * Writes batches to a store's file and, after an error, finds out what was written.
 *
 *   open ──append fails──► reopen ──► the batch is on disk: open, the append succeeded
 *                            ├──────► it is not: open, the append failed
 *                            └──────► unknown: closed, the append failed; the next one opens the file
 *                                     and removes what was reported as failed
 */
import { chmodSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { FileUnavailableError } from '#engine/store/sqlite/file-errors.ts';
import { COMPACTED_REVISION, INSERT_RECORD, metaCrc, SET_META } from '#engine/store/sqlite/format.ts';
import { readCompactedRevision } from '#engine/store/sqlite/log-reader.ts';
import { Unpacker } from '#engine/store/sqlite/record-codec.ts';

/** 8 MiB. A checkpoint then stalls writes for about 10 ms; larger intervals stall longer. */
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

  /** Opens the file exclusively. Its newest revision must be `expected`; otherwise another process wrote to it. */
  open(expected: number): void {
    if ((statSync(this.#file).mode & 0o077) !== 0) chmodSync(this.#file, 0o600);
    const open = this.#openFile();
    const newest = newestRevision(open.db, this.#file);
    if (newest !== expected) {
      open.db.close();
      throw new FileUnavailableError(
        `Cannot open ${this.#file}: its newest revision is ${newest}; expected ${expected}, as it was just read`,
      );
    }
    this.#open = open;
  }

  /**
   * Writes all of `packed` or nothing. `after` is the last revision that was reported as written, `last` the last
   * revision of the batch.
   */
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
      if (!this.#isCommitted(last)) throw error;
    }
  }

  /** Compacts in one transaction. Fails after a failed append, because only the next append examines the file. */
  compact(revision: number, removable: Float64Array): void {
    const open = this.#open;
    if (!open) throw new FileUnavailableError(`Cannot compact ${this.#file}: the last write failed`);
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

  /** Copies all committed data into the empty file `to`, without a separate log. */
  copy(to: string): void {
    const open = this.#open;
    if (!open) throw new FileUnavailableError(`Cannot copy ${this.#file}: the last write failed`);
    open.db.prepare('VACUUM INTO ?').run(to);
  }

  close(): void {
    this.#open?.db.close();
    this.#open = undefined;
  }

  /** A separate method, so that a test can lose its result. */
  protected commit(db: DatabaseSync): void {
    db.exec('COMMIT');
  }

  #openFile(): OpenFile {
    // Never creates the file: a missing file is an error, not an empty store.
    const db = new DatabaseSync(`${pathToFileURL(this.#file).href}?mode=rw`);
    try {
      db.exec(`
        PRAGMA locking_mode = EXCLUSIVE;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
        PRAGMA max_page_count = ${this.#maxPages};
      `);
      // The first transaction takes the lock, not the pragma.
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
      if (newest < after)
        throw new FileUnavailableError(`Cannot write to ${this.#file}: revisions are missing after ${newest}`);
      open.db.prepare('DELETE FROM log WHERE revision > ?').run(after);
      return open;
    } catch (error) {
      open.db.close();
      throw error;
    }
  }

  /** Reports whether a commit that reported an error is durable on disk. */
  #isCommitted(last: number): boolean {
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
      // Closing also rolls back.
    }
    open.db.close();
  }
}

/**
 * Returns the newest revision. All rows may have been compacted away, but never past the compacted revision, so the
 * larger of the two is the newest.
 */
function newestRevision(db: DatabaseSync, file: string): number {
  const { newest } = db.prepare('SELECT MAX(revision) AS newest FROM log').get() as { newest: number | null };
  return Math.max(newest ?? 0, readCompactedRevision(db, file));
}

/**
 * Copies the write-ahead log into the file and syncs it. A log whose sync failed may still be readable from the page
 * cache without being on disk; a new copy and sync make it durable.
 */
function checkpoint(db: DatabaseSync, file: string): void {
  const result = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
  if (result.busy !== 0)
    throw new FileUnavailableError(`Cannot write to ${file}: its write-ahead log cannot be copied`);
}
