/** A response that depends on a write in flight is not sent if that write fails. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
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
  /** Reports whether the object shows the write. */
  done(object: Loose): boolean;
}

const cases: Record<string, Case> = {
  'a PATCH that changes nothing after that write': {
    send: () => api.call('PATCH', url, { body: { data: { a: 'new' } } }),
    done: ({ data }) => data.a === 'new',
  },
  'a repeated DELETE': {
    send: () => api.call('DELETE', url),
    done: ({ metadata }) => metadata.deletionTimestamp !== undefined,
  },
};

for (const [name, { send, done }] of Object.entries(cases)) {
  test(`${name} is not acknowledged if the write before it fails`, async () => {
    journal.failWith('the disk is full');
    const [first, second] = await Promise.all([send(), send()]);
    assert.deepEqual([first.status, second.status], [500, 500]);
    assert.equal(done(await api.ok('GET', url)), false);
  });

  test(`${name} is acknowledged with the write before it, and writes nothing itself`, async () => {
    const before = api.store.revision;
    const [first, second] = await Promise.all([send(), send()]);
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.equal(second.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
    assert.equal(api.store.revision, before + 1);
    assert.equal(done(await api.ok('GET', url)), true);
  });
}

/** Requests that are refused because of a write in flight before them. */
const refused: Record<string, { status: number; send(resourceVersion: string): Promise<{ status: number }> }> = {
  'a PUT of an older revision': {
    status: 409,
    send: (resourceVersion) =>
      api.call('PUT', url, {
        body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', resourceVersion }, data: { a: 'mine' } },
      }),
  },
  'a JSON patch whose test fails': {
    status: 422,
    send: () =>
      api.call('PATCH', url, {
        contentType: 'application/json-patch+json',
        body: [
          { op: 'test', path: '/data/a', value: 'old' },
          { op: 'replace', path: '/data/a', value: 'mine' },
        ],
      }),
  },
};

for (const [name, { status, send }] of Object.entries(refused)) {
  test(`${name} is refused once the write that refuses it is readable`, async () => {
    const { resourceVersion } = (await api.ok('GET', url)).metadata;
    const first = api.call('PATCH', url, { body: { data: { a: 'new' } } });
    const answer = await send(resourceVersion);
    const seen = await api.ok('GET', url);
    assert.deepEqual([answer.status, seen.data.a], [status, 'new']);
    assert.equal((await first).status, 200);
  });

  test(`${name} is not refused because of a write that fails`, async () => {
    const { resourceVersion } = (await api.ok('GET', url)).metadata;
    journal.failWith('the disk is full');
    const first = api.call('PATCH', url, { body: { data: { a: 'new' } } });
    assert.deepEqual([(await send(resourceVersion)).status, (await first).status], [500, 500]);
  });
}
