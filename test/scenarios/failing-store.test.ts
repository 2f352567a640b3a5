/** Answers that build on a write in flight are not given when that write fails. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/memory/memory-journal.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let journal: MemoryJournal;
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
const url = `${CONFIGMAPS}/one`;

beforeEach(async () => {
  journal = new MemoryJournal();
  api = await startTestApi({ store: await LogStore.open(journal) });
  const metadata = { name: 'one', finalizers: ['example.org/hold'] };
  await api.ok('POST', CONFIGMAPS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: 'old' } } });
  await api.settle();
});
afterEach(async () => {
  journal.failWith(undefined);
  await api.stop();
});

interface Case {
  send(): Promise<{ status: number; body: Loose }>;
  /** Whether an object shows that it was done. */
  done(object: Loose): boolean;
}

const cases: Record<string, Case> = {
  'a PATCH that changes nothing any more': {
    send: () => api.call('PATCH', url, { body: { data: { a: 'new' } } }),
    done: ({ data }) => data.a === 'new',
  },
  'a repeated DELETE': {
    send: () => api.call('DELETE', url),
    done: ({ metadata }) => metadata.deletionTimestamp !== undefined,
  },
};

for (const [name, { send, done }] of Object.entries(cases)) {
  test(`${name} is not acknowledged when the write before it fails`, async () => {
    journal.failWith('the disk is full');
    const [first, second] = await Promise.all([send(), send()]);
    assert.deepEqual([first.status, second.status], [500, 500]);
    assert.equal(done(await api.ok('GET', url)), false);
  });

  test(`${name} is acknowledged with the write before it, and writes nothing of its own`, async () => {
    const before = api.store.revision;
    const [first, second] = await Promise.all([send(), send()]);
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.equal(second.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
    assert.equal(api.store.revision, before + 1);
    assert.equal(done(await api.ok('GET', url)), true);
  });
}
