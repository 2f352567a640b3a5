/** Nodes that fail and come back, and their pods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClusterScene, PODS, startClusterScene } from '#engine/controllers/scheduler/testing/cluster-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

async function nodeState(scene: ClusterScene, name: string) {
  const { status, spec } = await scene.ok('GET', `/api/v1/nodes/${name}`);
  const ready = status.conditions.find(({ type }: Loose) => type === 'Ready');
  const taints = (spec.taints ?? []).map(({ key, effect }: Loose) => `${key.split('/')[1]}:${effect}`);
  return { ready: ready.status, reason: ready.reason, message: ready.message, taints };
}

const conditionOf = (pod: Loose, wanted: string) => pod.status.conditions.find(({ type }: Loose) => type === wanted);
const UNREACHABLE = ['unreachable:NoSchedule', 'unreachable:NoExecute'];

async function startTwoNodes(scene: ClusterScene): Promise<void> {
  await scene.node('node-1');
  await scene.node('node-2');
}

test('a silent node is lost after 40 s, its pods after five more minutes, and it can come back', async (t) => {
  const scene = await startClusterScene(t);
  await startTwoNodes(scene);
  await scene.pod('web', { nodeName: 'node-1' });
  await scene.run('web');
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, []);
  await scene.advance(60);
  assert.equal((await nodeState(scene, 'node-1')).ready, 'True');

  scene.die('node-1');
  await scene.advance(30);
  assert.equal((await nodeState(scene, 'node-1')).ready, 'True', 'within its grace period');
  await scene.advance(10);
  assert.deepEqual(await nodeState(scene, 'node-1'), {
    ready: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    taints: UNREACHABLE,
  });
  const { status } = await scene.ok('GET', '/api/v1/nodes/node-1');
  assert.deepEqual(
    status.conditions.map(({ type, reason }: Loose) => `${type} ${reason}`),
    [
      'Ready NodeStatusUnknown',
      'MemoryPressure NodeStatusNeverUpdated',
      'DiskPressure NodeStatusNeverUpdated',
      'PIDPressure NodeStatusNeverUpdated',
    ],
  );
  const pod = await scene.ok('GET', `${PODS}/web`);
  assert.equal(conditionOf(pod, 'Ready').status, 'False');
  assert.deepEqual(await scene.events('web'), ['Warning NodeNotReady Node is not ready']);
  assert.deepEqual((await scene.events('node-1')).slice(-1), [
    'Normal NodeNotReady Node node-1 status is now: NodeNotReady',
  ]);

  await scene.advance(290);
  assert.equal((await scene.ok('GET', `${PODS}/web`)).metadata.deletionTimestamp, undefined);
  await scene.advance(10);
  const evicted = await scene.ok('GET', `${PODS}/web`);
  assert.notEqual(evicted.metadata.deletionTimestamp, undefined);
  const { status: holds, reason, message } = conditionOf(evicted, 'DisruptionTarget');
  assert.deepEqual(
    [holds, reason, message],
    ['True', 'DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint'],
  );
  assert.deepEqual((await scene.events('web')).slice(1), [
    'Normal TaintManagerEviction Marking for deletion Pod default/web',
  ]);

  await scene.revive('node-1');
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, []);
  assert.deepEqual((await scene.events('node-1')).slice(-1), ['Normal NodeReady Node node-1 status is now: NodeReady']);
});

test('a node that comes back in time keeps its pods', async (t) => {
  const scene = await startClusterScene(t);
  await startTwoNodes(scene);
  await scene.pod('web', { nodeName: 'node-1' });
  scene.die('node-1');
  await scene.advance(120);
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, UNREACHABLE);
  await scene.revive('node-1');
  await scene.advance(600);
  assert.deepEqual(await scene.places(), ['web@node-1']);
  assert.deepEqual(await scene.events('web'), ['Normal TaintManagerEviction Cancelling deletion of Pod default/web']);
});

test('the Lease alone keeps a node alive, and so does its status alone', async (t) => {
  const scene = await startClusterScene(t);
  await startTwoNodes(scene);
  scene.die('node-1');
  for (let i = 0; i < 6; i++) {
    await scene.advance(20);
    await scene.ok('PATCH', '/api/v1/nodes/node-1/status', {
      status: { conditions: [{ type: 'Ready', lastHeartbeatTime: new Date(scene.clock.now()).toISOString() }] },
    });
    await scene.settle();
  }
  assert.equal((await nodeState(scene, 'node-1')).ready, 'True');
  assert.equal((await nodeState(scene, 'node-2')).ready, 'True');
});

test('if all nodes are silent at the same time, nothing is evicted', async (t) => {
  const scene = await startClusterScene(t);
  await startTwoNodes(scene);
  await scene.pod('web', { nodeName: 'node-1', tolerations: [{ key: 'none', operator: 'Exists' }] });
  await scene.pod('impatient', {
    nodeName: 'node-2',
    tolerations: [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }],
  });
  scene.die('node-1');
  scene.die('node-2');
  await scene.advance(1000);
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, ['unreachable:NoSchedule']);
  assert.deepEqual((await nodeState(scene, 'node-2')).taints, ['unreachable:NoSchedule']);
  assert.deepEqual(await scene.places(), ['impatient@node-2', 'web@node-1']);

  await scene.revive('node-2');
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, UNREACHABLE, 'now only that node is silent');
  assert.deepEqual((await nodeState(scene, 'node-2')).taints, []);
});

test('a controller that starts gives every node a full grace period, and so also the pods on lost nodes', async (t) => {
  const scene = await startClusterScene(t);
  await startTwoNodes(scene);
  await scene.pod('web', { nodeName: 'node-1' });
  scene.die('node-1');
  await scene.advance(60);
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, UNREACHABLE);
  // The controller was stopped for an hour, and all Leases are old.
  scene.die('node-2');
  scene.clock.setWallClockBy(3_600_000);
  await scene.restart();
  assert.equal((await nodeState(scene, 'node-2')).ready, 'True');
  assert.equal((await scene.ok('GET', `${PODS}/web`)).metadata.deletionTimestamp, undefined);
  await scene.revive('node-2');
  await scene.advance(30);
  assert.equal((await scene.ok('GET', `${PODS}/web`)).metadata.deletionTimestamp, undefined);
  await scene.advance(10);
  assert.notEqual((await scene.ok('GET', `${PODS}/web`)).metadata.deletionTimestamp, undefined);
  assert.equal((await nodeState(scene, 'node-2')).ready, 'True');
});

test('NoExecute taints of users evict at once, after a delay, or never', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  const key = 'example.org/repair';
  await scene.pod('frail', { nodeName: 'node-1' });
  await scene.pod('patient', {
    nodeName: 'node-1',
    tolerations: [{ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }],
  });
  await scene.pod('firm', { nodeName: 'node-1', tolerations: [{ key, operator: 'Exists' }] });
  await scene.ok('PATCH', '/api/v1/nodes/node-1', { spec: { taints: [{ key, effect: 'NoExecute' }] } });
  await scene.settle();
  const terminating = async () => {
    const { items } = await scene.ok('GET', PODS);
    return items
      .filter(({ metadata }: Loose) => metadata.deletionTimestamp)
      .map(({ metadata }: Loose) => metadata.name);
  };
  assert.deepEqual(await terminating(), ['frail']);
  await scene.advance(50);
  assert.deepEqual(await terminating(), ['frail']);
  await scene.advance(10);
  assert.deepEqual(await terminating(), ['frail', 'patient']);
  await scene.advance(3600);
  assert.deepEqual(await terminating(), ['frail', 'patient']);
});

test('a node that reports itself as not ready is tainted at once', async (t) => {
  const scene = await startClusterScene(t);
  await startTwoNodes(scene);
  await scene.ok('PATCH', '/api/v1/nodes/node-1/status', {
    status: {
      conditions: [
        { type: 'Ready', status: 'False', reason: 'KubeletNotReady' },
        { type: 'DiskPressure', status: 'True' },
      ],
    },
  });
  await scene.settle();
  assert.deepEqual((await nodeState(scene, 'node-1')).taints, [
    'disk-pressure:NoSchedule',
    'not-ready:NoSchedule',
    'not-ready:NoExecute',
  ]);
});
