/** A store under test that can be restarted and whose writes can be made to fail. There is one for each journal. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogStore } from '#engine/store/log-store.ts';
import type { LogStoreOptions } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';
import type { Entry, Store, StoreEvent } from '#engine/store/store.ts';

export interface TestBed {
  /** Closes the open store, if any, and opens its data again, like a restart. */
  open(options?: LogStoreOptions): Promise<Store>;
  /** Makes writes fail, at the latest when they need more space than is available. */
  failWrites(): Promise<void>;
  repair(): Promise<void>;
  remove(): Promise<void>;
}

export function memoryBed(): TestBed {
  const journal = new MemoryJournal();
  let store: Store | undefined;
  return {
    async open(options) {
      await store?.close();
      store = await LogStore.open(journal, options);
      return store;
    },
    failWrites: async () => journal.failWith('it is full'),
    repair: async () => journal.failWith(undefined),
    remove: async () => store?.close(),
  };
}

export function sqliteBed(): TestBed & { readonly file: string } {
  const directory = temporaryDirectory();
  const file = join(directory, 'store.db');
  let journal: SqliteJournal | undefined;
  let store: Store | undefined;
  return {
    file,
    async open(options) {
      await store?.close();
      journal = new SqliteJournal(file);
      store = await LogStore.open(journal, options);
      return store;
    },
    // SQLite does not go below the current size of the file, so this allows no further page.
    failWrites: () => journal!.limitPages(1),
    repair: () => journal!.limitPages(0),
    async remove() {
      await store?.close();
      rmSync(directory, { recursive: true });
    },
  };
}

export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'store-test-'));
}

/** Creates or replaces `id`; its bytes are the revision and `text`. */
export function put(store: Store, id: string, text = '', collection = 'pods'): Promise<Entry> {
  const expected = store.latest(collection, id)?.revision ?? 0;
  return store.put({ collection, id, expected, encode: (revision) => Buffer.from(`${revision} ${text}`) });
}

export function remove(store: Store, id: string, text = '', collection = 'pods'): Promise<Entry> {
  const expected = store.latest(collection, id)?.revision ?? 0;
  return store.delete({ collection, id, expected, encode: (revision) => Buffer.from(`${revision} ${text}`) });
}

/** Larger than a page, so that it does not fit into a file that may not grow. */
export const LARGE_TEXT = 'x'.repeat(100_000);

export function show(entry: Entry | undefined): string | undefined {
  return entry && `${entry.id}@${entry.revision}: ${entry.bytes.toString()}`;
}

/** Formats an event: `put a@3 was 1`, `delete a@4 was 3`, `put b@5 was nothing`. */
export function showEvent({ type, entry, previous }: StoreEvent): string {
  return `${type} ${entry.id}@${entry.revision} was ${previous?.revision ?? 'nothing'}`;
}

export function ids(entries: readonly Entry[]): string[] {
  return entries.map(({ id }) => id);
}

/** Returns all current events of a collection after `since`. */
export function replay(store: Store, since: number, collection = 'pods'): StoreEvent[] {
  const events: StoreEvent[] = [];
  store.watch({ collection, since }, (batch) => events.push(...batch))();
  return events;
}
