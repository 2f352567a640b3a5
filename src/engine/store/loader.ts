/**
 * Builds the in-memory state from the journal's records: the index of current entries, and the history after the
 * compacted revision. A record that refers to a missing one means that records were lost; then nothing is served.
 */
import { Collection } from '#engine/store/collection.ts';
import { History } from '#engine/store/history.ts';
import type { HistoryLimits } from '#engine/store/history.ts';
import type { LogRecord } from '#engine/store/journal.ts';
import { StoreDamagedError } from '#engine/store/store.ts';
import type { StoreEvent } from '#engine/store/store.ts';

export class Loader {
  readonly collections = new Map<string, Collection>();
  readonly history: History;
  readonly #name: string;
  /** The newest revision. All rows may have been compacted away, but never past the compacted revision. */
  revision: number;

  constructor(name: string, compactedRevision: number, limits: HistoryLimits) {
    this.#name = name;
    this.revision = compactedRevision;
    this.history = new History(limits, compactedRevision);
  }

  addRecords(records: readonly LogRecord[]): void {
    for (const record of records) {
      const { revision } = record.entry;
      const event = applyRecord(this.collections, record);
      if (revision > this.history.compactedRevision) {
        if (event.type === 'delete' && !event.previous) throw this.#lost(revision);
        this.history.push(event);
      }
      this.revision = Math.max(this.revision, revision);
    }
  }

  #lost(revision: number): StoreDamagedError {
    return new StoreDamagedError(
      `Cannot open ${this.#name}: revision ${revision} deletes an object that is not there; restore it from a backup`,
    );
  }
}

/** Applies a record to the index and returns the resulting event. */
export function applyRecord(collections: Map<string, Collection>, { type, entry }: LogRecord): StoreEvent {
  let collection = collections.get(entry.collection);
  if (!collection) collections.set(entry.collection, (collection = new Collection()));
  const previous = type === 'put' ? collection.set(entry) : collection.remove(entry.id);
  if (collection.size === 0) collections.delete(entry.collection);
  return { type, entry, previous };
}
