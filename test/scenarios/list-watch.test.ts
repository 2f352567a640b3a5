/** Lists in pages and at revisions; watches from any revision. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { aGadget, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
const names = (list: Loose): string[] => list.items.map((item: Loose) => item.metadata.name);
const types = (events: { type: string; object: Loose }[]): string[] =>
  events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim());

before(async () => {
  // A small history, so that tests exceed it.
  api = await startTestApi({ store: await openMemoryStore({ maxHistoryEvents: 64 }) });
  await installGadgets(api);
});
after(() => api.stop());

/** Compacts old revisions away. */
async function compactHistory(): Promise<void> {
  const url = '/api/v1/namespaces/golden/configmaps';
  await api.call('POST', url, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'aging' }, data: {} } });
  for (let i = 0; i < 200; i++)
    await api.ok('PATCH', `${url}/aging`, { body: { data: { i: `${i}-${Math.random()}` } } });
}

describe('list', () => {
  before(async () => {
    for (const name of ['e', 'a', 'c', 'b', 'd']) {
      await api.ok('POST', GADGETS, {
        body: aGadget(
          name,
          { size: 1, color: name < 'c' ? 'red' : 'blue' },
          { labels: { half: name < 'c' ? 'one' : 'two' } },
        ),
      });
    }
  });

  test('all pages show the same revision, whatever changes meanwhile', async () => {
    const first = await api.ok('GET', `${GADGETS}?limit=2`);
    assert.deepEqual([names(first), first.metadata.remainingItemCount], [['a', 'b'], 3]);
    await api.ok('POST', GADGETS, { body: aGadget('bb', { size: 1 }) });
    await api.ok('DELETE', `${GADGETS}/d`);
    await api.ok('PATCH', `${GADGETS}/e`, { body: { spec: { size: 7 } } });
    const second = await api.ok('GET', `${GADGETS}?limit=2&continue=${first.metadata.continue}`);
    const third = await api.ok('GET', `${GADGETS}?limit=2&continue=${second.metadata.continue}`);
    assert.deepEqual([names(second), names(third)], [['c', 'd'], ['e']]);
    assert.equal(third.items[0].spec.size, 1);
    assert.equal(third.metadata.continue, undefined);
    assert.equal(third.metadata.resourceVersion, first.metadata.resourceVersion);
    assert.deepEqual(names(await api.ok('GET', GADGETS)), ['a', 'b', 'bb', 'c', 'e']);
    const exact = await api.ok(
      'GET',
      `${GADGETS}?resourceVersionMatch=Exact&resourceVersion=${first.metadata.resourceVersion}`,
    );
    assert.deepEqual(names(exact), ['a', 'b', 'c', 'd', 'e']);
  });

  test('selectors choose objects by labels and fields', async () => {
    const list = async (query: string) =>
      names(await api.ok('GET', `${GADGETS}?${new URLSearchParams(query).toString()}`));
    assert.deepEqual(await list('labelSelector=half in (one)'), ['a', 'b']);
    assert.deepEqual(await list('labelSelector=!half'), ['bb']);
    assert.deepEqual(await list('fieldSelector=metadata.name=c'), ['c']);
    assert.deepEqual(await list('fieldSelector=spec.color=blue'), ['c', 'e']);
    assert.deepEqual(await list('fieldSelector=metadata.namespace!=golden'), []);
    const page = await api.ok('GET', `${GADGETS}?limit=1&labelSelector=half`);
    assert.deepEqual([names(page), page.metadata.remainingItemCount], [['a'], undefined]);
    const next = await api.ok('GET', `${GADGETS}?limit=9&labelSelector=half&continue=${page.metadata.continue}`);
    assert.deepEqual(names(next), ['b', 'c', 'e']);
  });

  test('a page whose revision is compacted says so and can be continued', async () => {
    const first = await api.ok('GET', `${GADGETS}?limit=2`);
    await compactHistory();
    const { status, body } = await api.call('GET', `${GADGETS}?limit=2&continue=${first.metadata.continue}`);
    assert.deepEqual([status, body.reason], [410, 'Expired']);
    assert.match(body.message, /^The provided continue parameter is too old to display a consistent list result\./);
    assert.deepEqual(names(await api.ok('GET', `${GADGETS}?limit=9&continue=${body.metadata.continue}`)), [
      'bb',
      'c',
      'e',
    ]);
    const exact = await api.call(
      'GET',
      `${GADGETS}?resourceVersionMatch=Exact&resourceVersion=${first.metadata.resourceVersion}`,
    );
    assert.deepEqual(
      [exact.status, exact.body.message],
      [410, 'The resourceVersion for the provided list is too old.'],
    );
  });

  test('a table has the columns of the kind', async () => {
    const table = await api.ok('GET', GADGETS, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
    });
    assert.equal(table.kind, 'Table');
    assert.deepEqual(
      table.columnDefinitions.map((column: Loose) => column.name),
      ['Name', 'Size', 'Color', 'Age'],
    );
    assert.deepEqual(table.rows[0].cells.slice(0, 3), ['a', 1, 'red']);
    assert.equal(table.rows[0].object.kind, 'PartialObjectMetadata');
  });
});

describe('watch', () => {
  test('from the beginning: existing objects, then changes', async () => {
    await api.ok('POST', GADGETS, { body: aGadget('w1', { size: 1 }, { labels: { w: '1' } }) });
    const watch = await api.watch(`${GADGETS}?watch=1&labelSelector=w`);
    await api.ok('PATCH', `${GADGETS}/w1`, { body: { spec: { size: 2 } } });
    await api.ok('POST', GADGETS, { body: aGadget('w2', { size: 1 }, { labels: { w: '2' } }) });
    await api.ok('DELETE', `${GADGETS}/w2`);
    assert.deepEqual(types(await watch.awaitEvents(4)), ['ADDED w1', 'MODIFIED w1', 'ADDED w2', 'DELETED w2']);
    const versions = watch.events.map(({ object }) => Number(object.metadata.resourceVersion));
    assert.deepEqual(
      versions,
      [...versions].sort((a, b) => a - b),
    );
    watch.stop();
  });

  test('an object that begins or ceases to match the selector is added or deleted', async () => {
    const watch = await api.watch(
      `${GADGETS}?watch=1&resourceVersion=${api.store.revision}&labelSelector=${encodeURIComponent('w=1')}`,
    );
    await api.ok('PATCH', `${GADGETS}/w1`, { body: { metadata: { labels: { w: '9' } } } });
    await api.ok('PATCH', `${GADGETS}/w1`, { body: { metadata: { labels: { w: '1' } } } });
    const [left, entered] = await watch.awaitEvents(2);
    assert.deepEqual([left!.type, entered!.type], ['DELETED', 'ADDED']);
    assert.equal(left!.object.metadata.labels.w, '1', 'the last state that matched');
    assert.equal(Number(left!.object.metadata.resourceVersion) + 1, Number(entered!.object.metadata.resourceVersion));
    watch.stop();
  });

  test('resumes after a revision without a gap', async () => {
    const { metadata } = await api.ok('GET', GADGETS);
    await api.ok('PATCH', `${GADGETS}/a`, { body: { spec: { size: 4 } } });
    const watch = await api.watch(`${GADGETS}?watch=1&resourceVersion=${metadata.resourceVersion}`);
    await api.ok('PATCH', `${GADGETS}/a`, { body: { spec: { size: 5 } } });
    assert.deepEqual(
      (await watch.awaitEvents(2)).map(({ object }) => object.spec.size),
      [4, 5],
    );
    watch.stop();
  });

  test('initial events end with a bookmark', async () => {
    const watch = await api.watch(
      `${GADGETS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&labelSelector=w`,
    );
    const events = await watch.awaitEvents(2);
    assert.deepEqual(types(events), ['ADDED w1', 'BOOKMARK']);
    assert.equal(events[1]!.object.metadata.annotations['k8s.io/initial-events-end'], 'true');
    assert.equal(events[1]!.object.metadata.resourceVersion, String(api.store.revision));
    watch.stop();
  });

  test('without initial events: no existing objects', async () => {
    const watch = await api.watch(
      `${GADGETS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&labelSelector=w`,
    );
    await api.ok('PATCH', `${GADGETS}/w1`, { body: { spec: { size: 6 } } });
    assert.deepEqual(types(await watch.awaitEvents(1)), ['MODIFIED w1']);
    watch.stop();
  });

  test('as a table with an invalid includeObject: 400 instead of a stream that fails', async () => {
    const { status, body } = await api.call('GET', `${GADGETS}?watch=1&includeObject=Nonsense`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    });
    assert.deepEqual([status, body.reason], [400, 'BadRequest']);
  });

  test('from a compacted revision: an ERROR event with 410', async () => {
    const { metadata } = await api.ok('GET', GADGETS);
    await compactHistory();
    const watch = await api.watch(`${GADGETS}?watch=1&resourceVersion=${metadata.resourceVersion}`);
    await watch.ended;
    assert.deepEqual(
      [watch.events[0]!.type, watch.events[0]!.object.code, watch.events[0]!.object.reason],
      ['ERROR', 410, 'Expired'],
    );
    assert.match(watch.events[0]!.object.message, /^too old resource version: \d+ \(\d+\)$/);
  });

  test('as a table: only the first event has columns', async () => {
    const watch = await api.watch(`${GADGETS}?watch=1&labelSelector=w`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    });
    await api.ok('PATCH', `${GADGETS}/w1`, { body: { spec: { size: 8 } } });
    const [first, second] = await watch.awaitEvents(2);
    assert.equal(first!.object.columnDefinitions.length, 4);
    assert.equal(second!.object.columnDefinitions, null);
    assert.equal(second!.object.rows[0].cells[1], 8);
    watch.stop();
  });
});
