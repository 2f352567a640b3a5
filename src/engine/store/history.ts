/**
 * The most recent events, bounded by their number and by the bytes that only the history holds. Replays events for
 * watches, and lists the changes to undo for a list of a past revision. Decides which events to drop; the journal
 * removes them from disk.
 *
 * Holds every event after `compactedRevision`, with the entry that it replaced.
 */
import type { Undo } from '#engine/store/collection.ts';
import type { Entry, StoreEvent } from '#engine/store/store.ts';

export interface HistoryLimits {
  readonly maxEvents: number;
  /** Limit for the bytes of superseded and deleted versions. */
  readonly maxBytes: number;
}

/** The result of dropping old events: the new compacted revision, and the records that are no longer needed. */
interface Compaction {
  readonly revision: number;
  readonly removable: readonly number[];
}

export class History {
  readonly #limits: HistoryLimits;
  readonly #all = new EventLog();
  readonly #byCollection = new Map<string, EventLog>();
  #bytes = 0;
  #compactedRevision: number;

  constructor(limits: HistoryLimits, compactedRevision: number) {
    this.#limits = limits;
    this.#compactedRevision = compactedRevision;
  }

  get compactedRevision(): number {
    return this.#compactedRevision;
  }

  push(event: StoreEvent): void {
    this.#all.push(event);
    const { collection } = event.entry;
    let log = this.#byCollection.get(collection);
    if (!log) this.#byCollection.set(collection, (log = new EventLog()));
    log.push(event);
    this.#bytes += heldBytes(event);
  }

  /** Returns the events of a collection after `revision`, which must not be before compactedRevision. */
  since(collection: string, revision: number): readonly StoreEvent[] {
    return this.#byCollection.get(collection)?.after(revision) ?? [];
  }

  /** Returns the entries that ids changed after `revision` had at that revision. */
  undoTo(collection: string, revision: number): Undo {
    const undo = new Map<string, Entry | undefined>();
    for (const event of this.since(collection, revision)) {
      if (!undo.has(event.entry.id)) undo.set(event.entry.id, event.previous);
    }
    return undo;
  }

  /**
   * Drops the oldest events if there are too many: an eighth more than necessary, so that not every write has to do it.
   */
  cut(): Compaction | undefined {
    const { maxEvents, maxBytes } = this.#limits;
    if (this.#all.size <= maxEvents && this.#bytes <= maxBytes) return undefined;
    const keepEvents = Math.ceil((maxEvents * 7) / 8);
    const keepBytes = Math.ceil((maxBytes * 7) / 8);

    const removable: number[] = [];
    let size = this.#all.size;
    for (const event of this.#all) {
      if (size <= keepEvents && this.#bytes <= keepBytes) break;
      size--;
      this.#bytes -= heldBytes(event);
      this.#compactedRevision = event.entry.revision;
      if (event.previous) removable.push(event.previous.revision);
      if (event.type === 'delete') removable.push(event.entry.revision);
    }
    this.#drop();
    return { revision: this.#compactedRevision, removable };
  }

  #drop(): void {
    this.#all.dropThrough(this.#compactedRevision);
    for (const [collection, log] of this.#byCollection) {
      log.dropThrough(this.#compactedRevision);
      if (log.size === 0) this.#byCollection.delete(collection);
    }
  }
}

function heldBytes({ type, entry, previous }: StoreEvent): number {
  return (previous?.bytes.length ?? 0) + (type === 'delete' ? entry.bytes.length : 0);
}

/** Events in revision order. */
class EventLog {
  readonly #events: StoreEvent[] = [];

  get size(): number {
    return this.#events.length;
  }

  [Symbol.iterator](): Iterator<StoreEvent> {
    return this.#events.values();
  }

  push(event: StoreEvent): void {
    this.#events.push(event);
  }

  after(revision: number): StoreEvent[] {
    return this.#events.slice(this.#indexAfter(revision));
  }

  dropThrough(revision: number): void {
    this.#events.splice(0, this.#indexAfter(revision));
  }

  #indexAfter(revision: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#events[middle]!.entry.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
