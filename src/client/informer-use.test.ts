/** The interface of an informer: waiting, listeners, indexes. informer.test.ts tests how it follows the server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle } from '#lib/testing/fake-clock.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import type { Gadget } from '#client/testing/gadgets.ts';
import { startInformer } from '#client/testing/informer-world.ts';

test('waits for the revision of a write', async () => {
  const { api, link, informer, stop } = startInformer();
  await informer.waitForSync();
  const { metadata } = await link.client.create(GADGETS, aGadget('a'));
  assert.ok(await informer.waitForRevision(metadata.resourceVersion));
  assert.equal(informer.get('default/a')?.metadata.resourceVersion, metadata.resourceVersion);
  const controller = new AbortController();
  const never = informer.waitForRevision('99', { signal: controller.signal });
  controller.abort();
  assert.equal(await never, false);
  const later = informer.waitForRevision(String(api.revision + 1));
  api.put(GADGETS, aGadget('b'));
  assert.equal(await later, true);
  const whenStopped = informer.waitForRevision('999');
  await stop();
  assert.equal(await whenStopped, false);
});

test('does not wait for a revision that a restored server will never have', async () => {
  const { api, clock, informer, stop } = startInformer();
  api.put(GADGETS, aGadget('a'));
  api.put(GADGETS, aGadget('b'));
  await informer.waitForSync();
  await settle();
  let reached = false;
  void informer.waitForRevision('5').then(() => (reached = true));
  api.restart({ at: 1 });
  await clock.advance(1000);
  assert.ok(reached);
  await stop();
});

test('the wait for the first list rejects if the informer stops', async () => {
  const { link, informer, stop } = startInformer();
  link.state = 'held';
  const synced = assert.rejects(informer.waitForSync(), /the informer has stopped/);
  await stop();
  await synced;
});

test('a late listener gets the existing objects, and one that throws does not affect the others', async () => {
  const { api, seen, informer, stop } = startInformer();
  api.put(GADGETS, aGadget('a'));
  await informer.waitForSync();
  const late: string[] = [];
  informer.onChange(() => {
    throw new Error('boom');
  });
  const leave = informer.onChange((key, change) => late.push(`${key} ${change.old === undefined}`));
  await settle();
  api.put(GADGETS, aGadget('b'));
  await settle();
  leave();
  api.put(GADGETS, aGadget('c'));
  await settle();
  assert.deepEqual(late, ['default/a true', 'default/b true']);
  assert.deepEqual(seen, ['a@1', 'b@2', 'c@3']);
  await stop();
});

test('indexes are updated with the objects', async () => {
  const indexes = { color: ({ spec }: Gadget) => (spec?.color === undefined ? [] : [spec.color]) };
  const { api, informer, stop } = startInformer({ indexes, pageSize: 1 });
  const names = (color: string) => informer.byIndex('color', color).map(({ metadata }) => metadata.name);
  api.put(GADGETS, aGadget('a', { spec: { color: 'red' } }));
  api.put(GADGETS, aGadget('b', { spec: { color: 'red' } }));
  await informer.waitForSync();
  assert.deepEqual(names('red'), ['a', 'b']);
  await settle();
  api.put(GADGETS, aGadget('a', { spec: { color: 'blue' } }));
  await settle();
  assert.deepEqual([names('red'), names('blue')], [['b'], ['a']]);
  api.remove(GADGETS, { namespace: 'default', name: 'a' });
  await settle();
  assert.deepEqual(names('blue'), []);
  assert.throws(() => informer.byIndex('size', '1'), /no such index/);
  await stop();
});
