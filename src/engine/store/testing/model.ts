/** A naive reference store: keeps all events and folds over them for each query. */
import type { StoreListing, ListRange } from '#engine/store/store.ts';

export interface ModelEvent {
  readonly type: 'put' | 'delete';
  readonly collection: string;
  readonly id: string;
  readonly revision: number;
  readonly text: string;
  readonly previous: number | undefined;
}

export class StoreModel {
  readonly events: ModelEvent[] = [];

  get revision(): number {
    return this.events.at(-1)?.revision ?? 0;
  }

  record(type: ModelEvent['type'], collection: string, id: string, revision: number, text: string): void {
    const previous = this.stateAt(this.revision, collection).get(id)?.revision;
    this.events.push({ type, collection, id, revision, text, previous });
  }

  stateAt(revision: number, collection: string): Map<string, ModelEvent> {
    const state = new Map<string, ModelEvent>();
    for (const event of this.events) {
      if (event.revision > revision || event.collection !== collection) continue;
      if (event.type === 'put') state.set(event.id, event);
      else state.delete(event.id);
    }
    return state;
  }

  eventsAfter(since: number, collection: string, prefix: string): ModelEvent[] {
    return this.events.filter((event) => {
      return event.revision > since && event.collection === collection && event.id.startsWith(prefix);
    });
  }

  /** Lists entries as `id@revision text`. */
  list(collection: string, range: ListRange): { entries: string[]; remaining: number } {
    const { prefix = '', after = '', limit = Infinity, atRevision = this.revision } = range;
    const matching = [...this.stateAt(atRevision, collection).values()]
      .filter(({ id }) => id.startsWith(prefix) && id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id, revision, text }) => `${id}@${revision} ${text}`);
    return { entries: matching.slice(0, limit), remaining: Math.max(0, matching.length - limit) };
  }
}

/** Formats a listing like the model's. */
export function describeListing({ entries, remaining }: StoreListing): { entries: string[]; remaining: number } {
  return { entries: entries.map(({ id, revision, bytes }) => `${id}@${revision} ${bytes.toString()}`), remaining };
}
