/** The two stores there are. */
import { LogStore } from './log-store.ts';
import type { LogStoreOptions } from './log-store.ts';
import { MemoryJournal } from './memory/memory-journal.ts';
import { SqliteJournal } from './sqlite/sqlite-journal.ts';
import type { Store } from './store.ts';

/**
 * Opens or creates `file`; its directory must be there. Rejects with StoreDamagedError when the file cannot be trusted
 * and StoreUnavailableError when it cannot be opened, another process that uses it included.
 */
export function openSqliteStore(file: string, options: LogStoreOptions = {}): Promise<Store> {
  return LogStore.open(new SqliteJournal(file), options);
}

/** Forgets everything with the process. */
export function openMemoryStore(options: LogStoreOptions = {}): Promise<Store> {
  return LogStore.open(new MemoryJournal(), options);
}
