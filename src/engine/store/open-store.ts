/** Opens the store of a file. */
import { LogStore } from '#engine/store/log-store.ts';
import type { LogStoreOptions } from '#engine/store/log-store.ts';
import { SqliteJournal } from '#engine/store/sqlite/sqlite-journal.ts';
import type { Store } from '#engine/store/store.ts';

/**
 * Opens or creates `file`, whose directory must exist. Rejects with StoreDamagedError if the file is damaged, and with
 * StoreUnavailableError if it cannot be opened, for example because another process uses it.
 */
export function openSqliteStore(file: string, options: LogStoreOptions = {}): Promise<Store> {
  return LogStore.open(new SqliteJournal(file), options);
}
