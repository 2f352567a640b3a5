/**
 * The process that test/crash/store-kill.test.ts kills: many writers on `kill.db` in the working directory, each with a few ids of its
 * own. Prints `put id revision` and `delete id revision` as soon as a write is acknowledged.
 */
import { openSqliteStore } from '#engine/store/open-store.ts';
import type { Store } from '#engine/store/store.ts';
import { KILL_OPTIONS } from '#engine/store/testing/kill-options.ts';

const WRITERS = 32;
const IDS_PER_WRITER = 4;
const PADDING = 'x'.repeat(500);

async function writeForEver(store: Store, writer: number): Promise<never> {
  for (let turn = writer; ; turn++) {
    const id = `${writer}/${turn % IDS_PER_WRITER}`;
    const current = store.latest('pods', id);
    const type = current && turn % 3 === 0 ? 'delete' : 'put';
    const { revision } = await store[type]({
      collection: 'pods',
      id,
      expected: current?.revision ?? 0,
      encode: (given) => Buffer.from(JSON.stringify({ type, id, revision: given, PADDING })),
    });
    // Writing to a pipe is synchronous: the line has left this process before the next write begins.
    process.stdout.write(`${type} ${id} ${revision}\n`);
  }
}

const store = await openSqliteStore('kill.db', KILL_OPTIONS);
await Promise.all(Array.from({ length: WRITERS }, (_, writer) => writeForEver(store, writer)));
