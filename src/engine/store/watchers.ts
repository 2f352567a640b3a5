/**
 * Who watches what, and who waits for a revision. Each commit calls a watcher at most once, with the events of its
 * range. A watch may be started or ended from within a listener.
 */
import type { StoreEvent, WatchListener, WatchRange } from './store.ts';

interface Watcher {
  readonly prefix: string;
  readonly listener: WatchListener;
  /** Events up to it were replayed, or are not wanted. */
  readonly after: number;
}

export class Watchers {
  readonly #byCollection = new Map<string, Set<Watcher>>();

  /** Live events after `range.since`. The result ends it; ending twice does nothing. */
  add({ collection, prefix = '', since }: WatchRange, listener: WatchListener): () => void {
    const watcher: Watcher = { prefix, listener, after: since };
    let watchers = this.#byCollection.get(collection);
    if (!watchers) this.#byCollection.set(collection, (watchers = new Set()));
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#byCollection.get(collection) === watchers) this.#byCollection.delete(collection);
    };
  }

  /** Tells of one commit, in revision order. */
  publish(events: readonly StoreEvent[]): void {
    if (this.#byCollection.size === 0) return;
    for (const [collection, group] of groupByCollection(events)) {
      const selections = new Map<string, readonly StoreEvent[]>();
      for (const watcher of this.#byCollection.get(collection) ?? []) {
        const wanted = shareSelection(selections, group, watcher);
        if (wanted.length > 0) notify(watcher.listener, wanted);
      }
    }
  }

  clear(): void {
    for (const watchers of this.#byCollection.values()) watchers.clear();
    this.#byCollection.clear();
  }
}

/** Watchers of one range get the very same array, so that what they make of it can be shared as well. */
function shareSelection(
  selections: Map<string, readonly StoreEvent[]>,
  group: readonly StoreEvent[],
  { prefix, after }: Watcher,
): readonly StoreEvent[] {
  if (group[0]!.entry.revision <= after) return select(group, prefix, after);
  let selection = selections.get(prefix);
  if (selection === undefined) selections.set(prefix, (selection = select(group, prefix, after)));
  return selection;
}

/** The events behind `after` whose id starts with `prefix`; the array itself when that is all of them. */
export function select(events: readonly StoreEvent[], prefix: string, after: number): readonly StoreEvent[] {
  const all = prefix === '' && (events.length === 0 || events[0]!.entry.revision > after);
  return all ? events : events.filter(({ entry }) => entry.revision > after && entry.id.startsWith(prefix));
}

/** A listener must not throw. If one does, the commit goes on for the others and the mistake ends the process. */
export function notify(listener: WatchListener, events: readonly StoreEvent[]): void {
  try {
    listener(events);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function groupByCollection(events: readonly StoreEvent[]): Map<string, StoreEvent[]> {
  const groups = new Map<string, StoreEvent[]>();
  for (const event of events) {
    const group = groups.get(event.entry.collection);
    if (group) group.push(event);
    else groups.set(event.entry.collection, [event]);
  }
  return groups;
}
