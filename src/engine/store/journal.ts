/**
 * The storage below LogStore: an append-only log of records that outlives the process. The journal guarantees order and
 * durability. LogStore interprets the records: which are current, who watches them, and which may be dropped.
 *
 *   open ─► records (to the end) ─► append | compact, any number of times ─► close
 *
 * `open` and `records` reject with StoreDamagedError if the log is damaged, and with StoreUnavailableError if it cannot
 * be accessed. `append` rejects with StoreFullError if the disk is full. For other faults, `append` and `compact` reject
 * with StoreUnavailableError. The journal stays usable, and the next call continues after the last append that resolved.
 */
import type { StoreEvent } from '#engine/store/store.ts';

export type LogRecord = Pick<StoreEvent, 'type' | 'entry'> & { readonly isUrgent?: boolean };

export interface Journal {
  /** Name for messages: the file, or a substitute for it. */
  readonly name: string;

  /** True if the disk is almost full, so that only deletions and urgent writes should be appended. */
  readonly isSpaceScarce: boolean;

  open(): Promise<{ readonly compactedRevision: number }>;

  /** Yields all records in revision order, in batches. No record may be served before the end is reached. */
  records(): AsyncIterable<readonly LogRecord[]>;

  /**
   * Resolves when the whole batch is durable; rejects if none of it is. The next batch may be appended only after this
   * one settled. If the outcome is unknown, the journal rejects and removes the batch before it accepts another one.
   */
  append(batch: readonly LogRecord[]): Promise<void>;

  /**
   * Sets the compacted revision and removes the named records, atomically. May be called while an append runs.
   * `removable` is exact: versions that a record up to `revision` superseded, and deletes up to it.
   */
  compact(revision: number, removable: readonly number[]): Promise<void>;

  /** Waits for pending calls. Idempotent. */
  close(): Promise<void>;
}
