import type { EnginePod } from '#engine/controllers/kinds.ts';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import {
  decideCollectedPod,
  podGarbageCollector,
  QUARANTINE_MS,
  type CollectedPodWorld,
} from '#engine/controllers/pod-garbage-collector.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { startEngineController, type StartedController } from '#test/crash/collector.ts';
import { createBareNamespace } from '#test/support/bare-namespace.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

function aPod(phase: string, metadata: ObjectMeta = {}): Stored<EnginePod> {
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
  readonly pod: Stored<EnginePod>;
  readonly node: CollectedPodWorld['node'];
  readonly want: readonly string[];
  readonly againMs?: number;
}

const cases: Record<string, Case> = {
  'keeps a pod whose node exists': { pod: aPod('Running'), node: { state: 'present' }, want: [] },
  'keeps a pod under deletion whose node exists': {
    pod: aPod('Running', GRACEFUL),
    node: { state: 'present' },
    want: [],
  },
  'keeps a pod that has no node yet': { pod: aPod('Pending'), node: { state: 'unbound' }, want: [] },
  'waits for a missing node until the quarantine is over': {
    pod: aPod('Running'),
    node: { state: 'missing', forMs: 15_000 },
    want: [],
    againMs: 25_000,
  },
  'sets a pod on a deleted node to Failed and deletes it': {
    pod: aPod('Running'),
    node: { state: 'deleted' },
    want: ['Failed because DeletionByPodGC', 'delete'],
  },
  'deletes a finished pod without changing its phase': {
    pod: aPod('Succeeded'),
    node: { state: 'deleted' },
    want: ['delete'],
  },
  'deletes a pod on a deleted node without waiting for its grace period': {
    pod: aPod('Running', GRACEFUL),
    node: { state: 'deleted' },
    want: ['Failed because DeletionByPodGC', 'delete'],
  },
  'does not delete a pod again that waits for finalizers': {
    pod: aPod('Failed', FORCED),
    node: { state: 'deleted' },
    want: [],
  },
  'sets a pod under deletion that never had a node to Failed': {
    pod: aPod('Pending', FORCED),
    node: { state: 'unbound' },
    want: ['Failed'],
  },
};

for (const [name, { pod, node, want, againMs }] of Object.entries(cases)) {
  test(name, () => {
    const { changes, requeueAfterMs } = decideCollectedPod({ pod, node, now: '2026-01-01T00:00:00Z' });
    const described = changes.map((change) => {
      if (change.do === 'delete') return change.gracePeriodSeconds === 0 ? 'delete' : 'delete gracefully';
      if (change.do !== 'patch') return change.do;
      const { status } = change.patch.body as { status: NonNullable<EnginePod['status']> };
      return [status.phase, ...(status.conditions ?? []).map(({ reason }) => `because ${reason}`)].join(' ');
    });
    assert.deepEqual(described, want);
    assert.equal(requeueAfterMs, againMs);
  });
}

const PODS = '/api/v1/namespaces/default/pods';
const clock = new FakeClock();
let api: TestApi;
let started: StartedController;

before(async () => {
  api = await startTestApi({ clock, controllers: false });
  await createBareNamespace(api, 'default');
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

/** Waits until the watches have delivered all writes and the controller has processed them. */
async function settle(): Promise<void> {
  await clock.advance(0);
  await started.controller.idle();
}

test('deletes the pods of a deleted node after the quarantine, and keeps those of other nodes', async () => {
  for (const name of ['gone', 'stays']) await makeNode(name);
  for (const name of ['gone', 'stays']) await makePod(`on-${name}`, name);
  await makePod('held', 'gone', ['example.org/hold']);
  await settle();
  await api.ok('DELETE', '/api/v1/nodes/gone');
  await settle();
  await clock.advance(QUARANTINE_MS - 1000);
  assert.equal((await api.call('GET', `${PODS}/on-gone`)).status, 200);
  await clock.advance(1000);
  await settle();
  assert.equal((await api.call('GET', `${PODS}/on-gone`)).status, 404);
  const held = await api.ok('GET', `${PODS}/held`);
  assert.deepEqual([held.status.phase, held.status.conditions[0].type], ['Failed', 'DisruptionTarget']);
  const { metadata } = await api.ok('GET', `${PODS}/on-stays`);
  assert.equal(metadata.deletionTimestamp, undefined);
});

test('keeps the pods of a node that appears within the quarantine', async () => {
  await makePod('early', 'late-node');
  await settle();
  await clock.advance(QUARANTINE_MS / 2);
  await makeNode('late-node');
  await settle();
  await clock.advance(QUARANTINE_MS);
  const { metadata } = await api.ok('GET', `${PODS}/early`);
  assert.equal(metadata.deletionTimestamp, undefined);
});

test('asks the API about a node that no watch has delivered, and keeps its pods', async () => {
  await started.stop();
  const asked: string[] = [];
  const { promise: delivered, resolve: deliver } = Promise.withResolvers<void>();
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
          if (type.plural === 'nodes') await delivered;
          yield event;
        }
      },
    }),
  });
  await makeNode('unseen');
  await makePod('on-unseen', 'unseen');
  await settle();
  await clock.advance(QUARANTINE_MS);
  await settle();
  assert.ok(asked.includes('unseen'));
  const { metadata } = await api.ok('GET', `${PODS}/on-unseen`);
  assert.equal(metadata.deletionTimestamp, undefined);
  deliver();
});
