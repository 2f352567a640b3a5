import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import { CuttingStore } from '#test/support/crash-points.ts';

const NEVER = Symbol('never');
/** Returns the value of the promise if it is already resolved, or NEVER. */
const valueSoFar = async (waited: Promise<unknown>): Promise<unknown> => {
  await new Promise((resolve) => setImmediate(resolve));
  return await Promise.race([waited, Promise.resolve(NEVER)]);
};

test('uncounted collections accept writes until the cut, and none after it', async () => {
  const store = new CuttingStore(await LogStore.open(new MemoryJournal()), { uncounted: ['events'] });
  let ids = 0;
  const put = (collection: string) =>
    store.put({ collection, id: `default/${ids++}`, expected: 0, encode: () => Buffer.from('{}') });
  const cut = store.cutAfter(1);
  await put('pods');
  await put('events');
  assert.equal(await valueSoFar(cut), NEVER, 'the cut waits for one more counted write');
  assert.equal(await valueSoFar(put('pods')), NEVER);
  assert.equal(await valueSoFar(cut), 'cut');
  assert.equal(await valueSoFar(put('events')), NEVER);
});
