import type { Pod } from '#engine/controllers/kinds.ts';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import {
  decidePod,
  podGarbageCollector,
  QUARANTINE_MS,
  type PodWorld,
} from '#engine/controllers/pod-garbage-collector.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { startEngineController, type StartedController } from '#test/crash/collector.ts';
import { makeBareNamespace } from '#test/support/bare-namespace.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

function aPod(phase: string, metadata: ObjectMeta = {}): Stored<Pod> {
  const identity = { name: 'pod', namespace: 'ns', uid: 'uid-pod', resourceVersion: '1', creationTimestamp: '' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...identity, ...metadata },
    spec: { containers: [] },
    status: { phase },
  };
}

const GRACEFUL = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 };
const FORCED = { ...GRACEFUL, deletionGracePeriodSeconds: 0 };

interface Case {
  readonly pod: Stored<Pod>;
  readonly node: PodWorld['node'];
  readonly want: readonly string[];
  readonly againMs?: number;
}

const cases: Record<string, Case> = {
  'a pod on its node is left alone': { pod: aPod('Running'), node: { is: 'there' }, want: [] },
  'also when it is under deletion': { pod: aPod('Running', GRACEFUL), node: { is: 'there' }, want: [] },
  'a pod that waits for a node is left alone': { pod: aPod('Pending'), node: { is: 'none' }, want: [] },
  'a missing node is given time': {
    pod: aPod('Running'),
    node: { is: 'missed', forMs: 15_000 },
    want: [],
    againMs: 25_000,
  },
  'a pod on a node that is gone fails and is removed': {
    pod: aPod('Running'),
    node: { is: 'gone' },
    want: ['Failed because DeletionByPodGC', 'delete'],
  },
  'a finished pod keeps its phase': { pod: aPod('Succeeded'), node: { is: 'gone' }, want: ['delete'] },
  'nobody is left to wait for: the grace period is cut short': {
    pod: aPod('Running', GRACEFUL),
    node: { is: 'gone' },
    want: ['Failed because DeletionByPodGC', 'delete'],
  },
  'what finalizers hold is not deleted over and over': {
    pod: aPod('Failed', FORCED),
    node: { is: 'gone' },
    want: [],
  },
  'a pod under deletion that never had a node fails': {
    pod: aPod('Pending', FORCED),
    node: { is: 'none' },
    want: ['Failed'],
  },
};

for (const [name, { pod, node, want, againMs }] of Object.entries(cases)) {
  test(name, () => {
    const { changes, requeueAfterMs } = decidePod({ pod, node, now: '2026-01-01T00:00:00Z' });
    const said = changes.map((change) => {
      if (change.do === 'delete') return change.gracePeriodSeconds === 0 ? 'delete' : 'delete gracefully';
      if (change.do !== 'patch') return change.do;
      const { status } = change.patch.body as { status: NonNullable<Pod['status']> };
      return [status.phase, ...(status.conditions ?? []).map(({ reason }) => `because ${reason}`)].join(' ');
    });
    assert.deepEqual(said, want);
    assert.equal(requeueAfterMs, againMs);
  });
}

const PODS = '/api/v1/namespaces/default/pods';
const clock = new FakeClock();
let api: TestApi;
let started: StartedController;

before(async () => {
  api = await startTestApi({ clock, controllers: false });
  await makeBareNamespace(api, 'default');
  started = await startEngineController(podGarbageCollector, api, { clock });
});
after(async () => {
  await started.stop();
  await api.stop();
});

const makeNode = (name: string) =>
  api.ok('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata: { name } } });
const makePod = (name: string, nodeName: string, finalizers: string[] = []) =>
  api.ok('POST', PODS, {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, finalizers },
      spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    },
  });

/** Lets watches bring what was written, and the controller act on it. */
async function rest(): Promise<void> {
  await clock.advance(0);
  await started.controller.idle();
}

test('pods of a node that was deleted go after the quarantine; those of other nodes stay', async () => {
  for (const name of ['gone', 'stays']) await makeNode(name);
  for (const name of ['gone', 'stays']) await makePod(`on-${name}`, name);
  await makePod('held', 'gone', ['example.org/hold']);
  await rest();
  await api.ok('DELETE', '/api/v1/nodes/gone');
  await rest();
  await clock.advance(QUARANTINE_MS - 1000);
  assert.equal((await api.call('GET', `${PODS}/on-gone`)).status, 200);
  await clock.advance(1000);
  await rest();
  assert.equal((await api.call('GET', `${PODS}/on-gone`)).status, 404);
  const held = await api.ok('GET', `${PODS}/held`);
  assert.deepEqual([held.status.phase, held.status.conditions[0].type], ['Failed', 'DisruptionTarget']);
  const { metadata } = await api.ok('GET', `${PODS}/on-stays`);
  assert.equal(metadata.deletionTimestamp, undefined);
});

test('a node that comes within the quarantine keeps its pods', async () => {
  await makePod('early', 'late-node');
  await rest();
  await clock.advance(QUARANTINE_MS / 2);
  await makeNode('late-node');
  await rest();
  await clock.advance(QUARANTINE_MS);
  const { metadata } = await api.ok('GET', `${PODS}/early`);
  assert.equal(metadata.deletionTimestamp, undefined);
});

test('a node that no watch has shown keeps its pods: the API is asked', async () => {
  await started.stop();
  const asked: string[] = [];
  const { promise: shown, resolve: show } = Promise.withResolvers<void>();
  started = await startEngineController(podGarbageCollector, api, {
    clock,
    through: (client) => ({
      ...client,
      get(type, object, options) {
        asked.push(object.name);
        return client.get(type, object, options);
      },
      async *watch(type, options) {
        for await (const event of client.watch(type, options)) {
          if (type.plural === 'nodes') await shown;
          yield event;
        }
      },
    }),
  });
  await makeNode('unseen');
  await makePod('on-unseen', 'unseen');
  await rest();
  await clock.advance(QUARANTINE_MS);
  await rest();
  assert.ok(asked.includes('unseen'));
  const { metadata } = await api.ok('GET', `${PODS}/on-unseen`);
  assert.equal(metadata.deletionTimestamp, undefined);
  show();
});
