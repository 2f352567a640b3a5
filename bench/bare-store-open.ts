/** The floor for memory and start-up: a process that opens the store, prints `ready` and waits for SIGTERM. */
import { openSqliteStore } from '#engine/store/open-store.ts';

const store = await openSqliteStore(process.argv[2]!);
process.on('SIGTERM', () => void store.close());
process.stdout.write('ready\n');
