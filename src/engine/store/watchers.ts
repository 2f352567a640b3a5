/**
 * The watchers of all collections. Each commit calls a watcher at most once, with the events of its range. A listener
 * may start or end a watch.
 */
import type { StoreEvent, WatchListener, WatchRange } from '#engine/store/store.ts';

interface Watcher {
  readonly prefix: string;
  readonly listener: WatchListener;
  /** Events up to this revision were replayed or are not wanted. */
  readonly after: number;
}

export class Watchers {
  readonly #byCollection = new Map<string, Set<Watcher>>();

  /** Watches live events after `range.since`. Returns a function that ends the watch; calling it twice does nothing. */
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

  /** Reports one commit to the watchers. Must be called in revision order. */
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

/** Caches selections, so that watchers of the same range get the same array and can share derived values. */
function shareSelection(
  selections: Map<string, readonly StoreEvent[]>,
  group: readonly StoreEvent[],
  { prefix, after }: Watcher,
): readonly StoreEvent[] {
  if (group[0]!.entry.revision <= after) return selectEvents(group, prefix, after);
  let selection = selections.get(prefix);
  if (selection === undefined) selections.set(prefix, (selection = selectEvents(group, prefix, after)));
  return selection;
}

/** Returns the events after `after` whose id starts with `prefix`; the same array if all match. */
export function selectEvents(events: readonly StoreEvent[], prefix: string, after: number): readonly StoreEvent[] {
  const all = prefix === '' && (events.length === 0 || events[0]!.entry.revision > after);
  return all ? events : events.filter(({ entry }) => entry.revision > after && entry.id.startsWith(prefix));
}

/**
 * Calls a listener, which must not throw. If it does, the other listeners are still called, and the exception ends the
 * process.
 */
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
