/**
 * The port below LogStore: an append-only log of records that outlives the process. It keeps order and durability;
 * what the records mean (which is current, who watches, what may be forgotten) is LogStore's business.
 *
 *   open ─► records (to the end) ─► append | compact, any number of times ─► close
 *
 * Faults: `open` and `records` reject with StoreDamagedError when the log cannot be trusted and with
 * StoreUnavailableError when it cannot be reached. `append` and `compact` reject with StoreUnavailableError; the
 * journal stays usable, and the next call tries again from the last append that resolved.
 */
import type { StoreEvent } from './store.ts';

export type LogRecord = Pick<StoreEvent, 'type' | 'entry'>;

export interface Journal {
  /** For messages: the file, or what stands for it. */
  readonly name: string;

  open(): Promise<{ readonly compactedRevision: number }>;

  /** All records in revision order, in batches. Nothing of it may be served before the end was reached. */
  records(): AsyncIterable<readonly LogRecord[]>;

  /**
   * Resolves when all of the batch is durable; rejects when none of it is. One at a time: the next batch may be given
   * only after this one settled. Where the outcome cannot be found out now, the journal rejects and sees to it that
   * the batch is gone before it takes another.
   */
  append(batch: readonly LogRecord[]): Promise<void>;

  /**
   * Makes `revision` the compacted revision and removes the records named, all or nothing. May be called while an
   * append runs. `removable` is exact: versions that a record up to `revision` superseded, and deletes up to it.
   */
  compact(revision: number, removable: readonly number[]): Promise<void>;

  /** Waits for what was given. Idempotent. */
  close(): Promise<void>;
}
