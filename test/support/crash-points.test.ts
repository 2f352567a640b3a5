import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/memory/memory-journal.ts';
import { CuttingStore } from '#test/support/crash-points.ts';

const NEVER = Symbol('never');
/** What a promise has come to by now. */
const soFar = async (waited: Promise<unknown>): Promise<unknown> => {
  await new Promise((resolve) => setImmediate(resolve));
  return await Promise.race([waited, Promise.resolve(NEVER)]);
};

test('what is free is taken until the cut, and nothing after it', async () => {
  const store = new CuttingStore(await LogStore.open(new MemoryJournal()), { free: ['events'] });
  let ids = 0;
  const put = (collection: string) =>
    store.put({ collection, id: `default/${ids++}`, expected: 0, encode: () => Buffer.from('{}') });
  const cut = store.cutAfter(1);
  await put('pods');
  await put('events');
  assert.equal(await soFar(cut), NEVER, 'nobody asked for one more');
  assert.equal(await soFar(put('pods')), NEVER);
  assert.equal(await soFar(cut), 'cut');
  assert.equal(await soFar(put('events')), NEVER);
});
