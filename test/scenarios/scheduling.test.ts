/** Pods are assigned to nodes, or the reason why not is reported. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS, startClusterScene } from '#engine/controllers/scheduler/testing/cluster-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const scheduledCondition = ({ status }: Loose) => status.conditions?.find(({ type }: Loose) => type === 'PodScheduled');

test('a pod is assigned to a node, with an Event', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await scene.pod('web');
  const pod = await scene.ok('GET', `${PODS}/web`);
  assert.equal(pod.spec.nodeName, 'node-1');
  assert.deepEqual([scheduledCondition(pod).status, scheduledCondition(pod).reason], ['True', undefined]);
  assert.deepEqual(await scene.events('web'), ['Normal Scheduled Successfully assigned default/web to node-1']);
});

test('pods go to the least used node, one after the other', async (t) => {
  const scene = await startClusterScene(t);
  for (const name of ['node-1', 'node-2', 'node-3']) await scene.node(name);
  const bodies = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '500m' } } }] },
  }));
  await Promise.all(bodies.map((body) => scene.ok('POST', PODS, body)));
  await scene.settle();
  const nodes = (await scene.places()).map((place) => place.split('@')[1] ?? '');
  assert.deepEqual(nodes.sort(), ['node-1', 'node-1', 'node-2', 'node-2', 'node-3', 'node-3']);
});

test('pods that are created at the same time get no more than the available resources', async (t) => {
  const scene = await startClusterScene(t);
  for (const name of ['node-1', 'node-2']) await scene.node(name);
  const bodies = Array.from({ length: 12 }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod-${at}` },
    spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '1' } } }] },
  }));
  await Promise.all(bodies.map((body) => scene.ok('POST', PODS, body)));
  await scene.settle();
  const nodes = (await scene.places()).map((place) => place.split('@')[1] ?? '').sort();
  const onEach = ['node-1', 'node-2'].map((name) => nodes.filter((node) => node === name).length);
  assert.deepEqual(onEach, [4, 4]);
});

test('a pod that fits on no node reports why, once, and is assigned when there is room', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await scene.pod('first', { requests: { cpu: '3' } });
  await scene.pod('second', { requests: { cpu: '2' } });
  const message =
    '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.';
  const pod = await scene.ok('GET', `${PODS}/second`);
  const { status, reason, message: said } = scheduledCondition(pod);
  assert.deepEqual([status, reason, said], ['False', 'Unschedulable', message]);
  assert.deepEqual(await scene.events('second'), [`Warning FailedScheduling ${message}`]);

  const before = scene.revision;
  await scene.advance(60);
  const events: Loose[] = (await scene.ok('GET', '/api/v1/namespaces/default/events')).items;
  assert.equal(events.find(({ involvedObject }) => involvedObject.name === 'second').count, 1);
  assert.ok(scene.revision - before <= 6, 'only the Lease of the node is written');

  await scene.ok('DELETE', `${PODS}/first?gracePeriodSeconds=0`);
  await scene.settle();
  assert.deepEqual(await scene.places(), ['second@node-1']);
  assert.equal(scheduledCondition(await scene.ok('GET', `${PODS}/second`)).status, 'True');
});

test('the report is repeated after five minutes', async (t) => {
  const scene = await startClusterScene(t);
  await scene.pod('lonely');
  assert.deepEqual(await scene.events('lonely'), ['Warning FailedScheduling no nodes available to schedule pods']);
  await scene.advance(301);
  const [event] = (await scene.ok('GET', '/api/v1/namespaces/default/events')).items;
  assert.equal(event.count, 2);
});

test('waiting pods are assigned to a node as soon as it is ready', async (t) => {
  const scene = await startClusterScene(t);
  await scene.pod('web');
  await scene.ok('POST', '/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'raw' },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110' } },
  });
  await scene.settle();
  assert.deepEqual(await scene.places(), ['web@'], 'a node that has not reported gets no pods');
  const { message } = scheduledCondition(await scene.ok('GET', `${PODS}/web`));
  assert.match(
    message,
    /^0\/1 nodes are available: 1 node\(s\) had untolerated taint {node.kubernetes.io\/not-ready: }\. /,
  );
  await scene.ok('PATCH', '/api/v1/nodes/raw/status', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  await scene.settle();
  assert.deepEqual(await scene.places(), ['web@raw']);
});

test('cordoned nodes get no pods until they are uncordoned', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await scene.ok('PATCH', '/api/v1/nodes/node-1', { spec: { unschedulable: true } });
  await scene.settle();
  const { spec } = await scene.ok('GET', '/api/v1/nodes/node-1');
  assert.deepEqual(
    spec.taints.map(({ key, effect }: Loose) => `${key}:${effect}`),
    ['node.kubernetes.io/unschedulable:NoSchedule'],
  );
  await scene.pod('web');
  assert.match((await scene.events('web'))[0]!, /0\/1 nodes are available: 1 node\(s\) were unschedulable\. /);
  await scene.ok('PATCH', '/api/v1/nodes/node-1', { spec: { unschedulable: null } });
  await scene.settle();
  assert.deepEqual(await scene.places(), ['web@node-1']);
  assert.equal((await scene.ok('GET', '/api/v1/nodes/node-1')).spec.taints, undefined);
});

test('pods with scheduling gates and pods of other schedulers are left alone', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await scene.pod('gated', { schedulingGates: [{ name: 'example.org/wait' }] });
  await scene.pod('foreign', { schedulerName: 'mine' });
  assert.deepEqual(await scene.places(), ['foreign@', 'gated@']);
  await scene.ok('PATCH', `${PODS}/gated`, {
    spec: { schedulingGates: [{ $patch: 'delete', name: 'example.org/wait' }] },
  });
  await scene.settle();
  assert.deepEqual(await scene.places(), ['foreign@', 'gated@node-1']);
});

test('the waiting pod with the higher priority is assigned first', async (t) => {
  const scene = await startClusterScene(t);
  await scene.ok('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'high' },
    value: 1000,
  });
  await scene.pod('low', { requests: { cpu: '3' } });
  await scene.pod('high', { requests: { cpu: '3' }, priorityClassName: 'high' });
  await scene.node('node-1');
  assert.deepEqual(await scene.places(), ['high@node-1', 'low@']);
});

test('a claim that waits for its consumer gets the node, and the pod starts when the claim is bound', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await scene.node('node-2');
  await scene.ok('POST', '/apis/storage.k8s.io/v1/storageclasses', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'late' },
    provisioner: 'example.org/disks',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
  await scene.pod('db', { volumes, requests: { cpu: '3' } });
  assert.match((await scene.events('db'))[0]!, /: persistentvolumeclaim "data" not found\. /);
  await scene.ok('POST', CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'late', resources: { requests: { storage: '1Gi' } } },
  });
  await scene.settle();
  const claim = await scene.ok('GET', `${CLAIMS}/data`);
  assert.equal(claim.metadata.annotations['volume.kubernetes.io/selected-node'], 'node-1');
  assert.deepEqual(await scene.places(), ['db@']);

  await scene.pod('other', { requests: { cpu: '3' } });
  assert.deepEqual(await scene.places(), ['db@', 'other@node-2'], 'the room on node-1 stays reserved');

  await scene.ok('PATCH', `${CLAIMS}/data`, { spec: { volumeName: 'pv-1' } });
  await scene.ok('POST', '/api/v1/persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1' },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/x' } },
  });
  await scene.ok('PATCH', `${CLAIMS}/data/status`, { status: { phase: 'Bound' } });
  await scene.settle();
  assert.deepEqual(await scene.places(), ['db@node-1', 'other@node-2']);
});

test('a restarted scheduler continues where the previous one stopped', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await scene.pod('first', { requests: { cpu: '3' } });
  await scene.pod('second', { requests: { cpu: '3' } });
  const before = scene.revision;
  await scene.restart();
  assert.equal(scene.revision, before, 'an existing report is not repeated');
  await scene.node('node-2');
  assert.deepEqual(await scene.places(), ['first@node-1', 'second@node-2']);
});
