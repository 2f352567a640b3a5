/** Opens stores that are lost when the process ends. */
import { LogStore, type LogStoreOptions } from '#engine/store/log-store.ts';
import type { Store } from '#engine/store/store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';

export function openMemoryStore(options: LogStoreOptions = {}): Promise<Store> {
  return LogStore.open(new MemoryJournal(), options);
}
