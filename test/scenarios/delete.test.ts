/** Deletes: their limits, and what delays them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { createBareNamespace } from '#test/support/bare-namespace.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
const clock = new FakeClock();
const PODS = '/api/v1/namespaces/default/pods';
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
const configMap = (name: string, metadata: Loose = {}): Loose => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
});

before(async () => {
  api = await startTestApi({ clock });
});
after(() => api.stop());

test('a collection without a namespace cannot be deleted', async () => {
  await api.ok('POST', CONFIGMAPS, { body: configMap('stays') });
  const before = api.store.revision;
  const { status, body } = await api.call('DELETE', '/api/v1/configmaps');
  assert.deepEqual([status, body.reason], [405, 'MethodNotAllowed']);
  assert.equal(api.store.revision, before);
  await api.ok('GET', `${CONFIGMAPS}/stays`);
});

for (const url of [`${CONFIGMAPS}/kept`, CONFIGMAPS]) {
  test(`delete options that cannot be parsed delete nothing: ${url}`, async () => {
    await api.call('POST', CONFIGMAPS, { body: configMap('kept') });
    const before = api.store.revision;
    const { status } = await api.call('DELETE', url, { body: { dryRun: 'All' } });
    assert.equal(status, 400);
    assert.equal(api.store.revision, before);
  });
}

test('during graceful deletion of a pod, a second delete changes nothing and a shorter grace period counts from the first', async () => {
  const url = `${PODS}/graceful`;
  const spec = { nodeName: 'node-1', containers: [{ name: 'c', image: 'i' }] };
  await api.ok('POST', PODS, { body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'graceful' }, spec } });
  const begun = clock.now();
  const first = await api.ok('DELETE', url);
  assert.equal(Date.parse(first.metadata.deletionTimestamp), begun + 30_000);

  await clock.advance(5000);
  const before = api.store.revision;
  assert.deepEqual(await api.ok('DELETE', url), first);
  assert.deepEqual(await api.ok('DELETE', `${url}?gracePeriodSeconds=60`), first, 'a longer grace period is ignored');
  assert.equal(api.store.revision, before);

  const shorter = await api.ok('DELETE', `${url}?gracePeriodSeconds=10`);
  assert.equal(shorter.metadata.deletionGracePeriodSeconds, 10);
  assert.equal(Date.parse(shorter.metadata.deletionTimestamp), begun + 10_000);
});

const PRESERVED =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';

interface JobDelete {
  readonly query?: string;
  readonly finalizers?: string[];
  readonly want: { readonly warnings: string[]; readonly finalizers: string[] | 'gone' };
}

const jobDeletes: Record<string, JobDelete> = {
  'without a policy keeps its pods and warns about it': {
    want: { warnings: [PRESERVED], finalizers: ['orphan'] },
  },
  'with policy Orphan does not warn': {
    query: '?propagationPolicy=Orphan',
    want: { warnings: [], finalizers: ['orphan'] },
  },
  'with policy Background removes the Job at once': {
    query: '?propagationPolicy=Background',
    want: { warnings: [], finalizers: 'gone' },
  },
  'with the deprecated parameter removes the Job at once': {
    query: '?orphanDependents=false',
    want: { warnings: [], finalizers: 'gone' },
  },
  'without a policy follows an existing finalizer': {
    finalizers: ['foregroundDeletion'],
    want: { warnings: [PRESERVED], finalizers: ['foregroundDeletion'] },
  },
};

for (const [name, { query = '', finalizers = [], want }] of Object.entries(jobDeletes)) {
  test(`deleting a Job ${name}`, async () => {
    const bare = await startTestApi({ controllers: false });
    await createBareNamespace(bare, 'default');
    const jobs = '/apis/batch/v1/namespaces/default/jobs';
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } };
    for (const job of ['one', 'all']) {
      const metadata = { name: job, finalizers };
      await bare.ok('POST', jobs, { body: { apiVersion: 'batch/v1', kind: 'Job', metadata, spec: { template } } });
    }
    const one = await bare.call('DELETE', `${jobs}/one${query}`);
    const all = await bare.call('DELETE', `${jobs}${query}`);
    assert.deepEqual([one.warnings, all.warnings], [want.warnings, want.warnings]);
    for (const job of ['one', 'all']) {
      const { status, body } = await bare.call('GET', `${jobs}/${job}`);
      assert.deepEqual(status === 404 ? 'gone' : body.metadata.finalizers, want.finalizers);
    }
    await bare.stop();
  });
}

test('objects that finalizers hold do not prevent the deletion of other objects in their namespace', async () => {
  const real = await startTestApi();
  const url = '/api/v1/namespaces/crowded/configmaps';
  const name = (i: number) => `held-${String(i).padStart(3, '0')}`;
  await real.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'crowded' } },
  });
  // More objects than one batch deletes, and first in the order of names.
  const held = Array.from({ length: 150 }, (_, i) => configMap(name(i), { finalizers: ['example.org/hold'] }));
  await Promise.all([...held, configMap('last')].map((body) => real.ok('POST', url, { body })));
  const watch = await real.watch(`${url}?watch=1&fieldSelector=metadata.name=last`);
  const namespaces = await real.watch('/api/v1/namespaces?watch=1&fieldSelector=metadata.name=crowded');
  await real.ok('DELETE', '/api/v1/namespaces/crowded');
  assert.deepEqual(
    (await watch.awaitEvents(2)).map(({ type }) => type),
    ['ADDED', 'DELETED'],
  );

  const message = (object: Loose, type: string): string =>
    object.status.conditions?.find((condition: Loose) => condition.type === type)?.message;
  let last: Loose;
  for (let seen = 1; ; seen++) {
    last = (await namespaces.awaitEvents(seen))[seen - 1]!.object;
    if (message(last, 'NamespaceContentRemaining')?.includes('150')) break;
  }
  assert.equal(
    message(last, 'NamespaceContentRemaining'),
    'Some resources are remaining: configmaps. has 150 resource instances',
  );
  assert.equal(
    message(last, 'NamespaceFinalizersRemaining'),
    'Some content in the namespace has finalizers remaining: example.org/hold in 150 resource instances',
  );
  assert.equal(last.status.phase, 'Terminating');

  await Promise.all(
    held.map(({ metadata }) =>
      real.ok('PATCH', `${url}/${metadata.name}`, { body: { metadata: { finalizers: null } } }),
    ),
  );
  for (let seen = 1; (await namespaces.awaitEvents(seen))[seen - 1]!.type !== 'DELETED'; seen++);
  watch.stop();
  namespaces.stop();
  await real.stop();
});
