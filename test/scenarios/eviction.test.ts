/** Evictions and disruption budgets, as `kubectl drain` uses them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClusterScene, PODS, startClusterScene } from '#engine/controllers/scheduler/testing/cluster-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const web = { labels: { app: 'web' } };

async function budget(scene: ClusterScene, spec: Loose): Promise<void> {
  await scene.ok('POST', BUDGETS, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  });
  await scene.settle();
}

const statusOf = async (scene: ClusterScene) => (await scene.ok('GET', `${BUDGETS}/web`)).status;

function evict(scene: ClusterScene, name: string) {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
  return scene.call('POST', `${PODS}/${name}/eviction`, body);
}

async function startPods(scene: ClusterScene, ...names: string[]): Promise<void> {
  for (const name of names) {
    await scene.pod(name, web);
    await scene.run(name);
  }
}

/** Removes a terminating pod, as the node agent does. */
const removePod = (scene: ClusterScene, name: string) => scene.ok('DELETE', `${PODS}/${name}?gracePeriodSeconds=0`);

test('a budget counts its pods and reports how many may be disrupted', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await budget(scene, { minAvailable: 2 });
  const now = '2030-03-17T17:46:40Z';
  const condition = { type: 'DisruptionAllowed', message: '', observedGeneration: 1, lastTransitionTime: now };
  assert.deepEqual(await statusOf(scene), {
    observedGeneration: 1,
    currentHealthy: 0,
    desiredHealthy: 2,
    expectedPods: 0,
    disruptionsAllowed: 0,
    conditions: [{ ...condition, status: 'False', reason: 'InsufficientPods' }],
  });
  assert.deepEqual(await scene.events('web'), ['Normal NoPods No matching pods found']);
  await startPods(scene, 'a', 'b', 'c');
  assert.deepEqual(await statusOf(scene), {
    observedGeneration: 1,
    currentHealthy: 3,
    desiredHealthy: 2,
    expectedPods: 3,
    disruptionsAllowed: 1,
    conditions: [{ ...condition, status: 'True', reason: 'SufficientPods' }],
  });
});

test('of two concurrent evictions, one is refused if one is allowed', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await budget(scene, { minAvailable: 2 });
  await startPods(scene, 'a', 'b', 'c');
  const responses = await Promise.all([evict(scene, 'a'), evict(scene, 'b')]);
  assert.deepEqual(
    responses.map(({ status }) => status).sort((a, b) => a - b),
    [201, 429],
  );
  const refused = responses.find(({ status }) => status === 429)!.body;
  assert.equal(refused.message, "Cannot evict pod as it would violate the pod's disruption budget.");
  await scene.settle();
  const { disruptionsAllowed, currentHealthy, disruptedPods } = await statusOf(scene);
  assert.deepEqual([disruptionsAllowed, currentHealthy, disruptedPods], [0, 2, undefined]);
});

test('draining a node evicts pods one by one, as replacements become ready elsewhere', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await budget(scene, { minAvailable: 2 });
  await startPods(scene, 'a', 'b');
  await scene.node('node-2');
  await scene.ok('PATCH', '/api/v1/nodes/node-1', { spec: { unschedulable: true } });
  await scene.settle();

  for (const [name, next] of [
    ['a', 'c'],
    ['b', 'd'],
  ] as const) {
    const refused = await evict(scene, name);
    assert.equal(refused.status, 429);
    assert.equal(
      refused.body.details.causes[0].message,
      'The disruption budget web needs 2 healthy pods and has 2 currently',
    );
    await startPods(scene, next);
    assert.equal((await evict(scene, name)).status, 201);
    const terminating = await scene.ok('GET', `${PODS}/${name}`);
    assert.equal(
      terminating.status.conditions.find(({ type }: Loose) => type === 'DisruptionTarget').reason,
      'EvictionByEvictionAPI',
    );
    await removePod(scene, name);
    await scene.settle();
  }
  assert.deepEqual(await scene.places(), ['c@node-2', 'd@node-2']);
});

test('an eviction that removed nothing releases its slot after two minutes', async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  await budget(scene, { minAvailable: 1 });
  await startPods(scene, 'a', 'b');
  // As if the server had stopped between the writes of the budget and of the pod.
  const { status } = await scene.ok('GET', `${BUDGETS}/web`);
  const disruptedPods = { a: '2030-03-17T17:46:40Z' };
  await scene.ok('PATCH', `${BUDGETS}/web/status`, { status: { ...status, disruptionsAllowed: 0, disruptedPods } });
  const marked = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    lastTransitionTime: disruptedPods.a,
  };
  await scene.ok('PATCH', `${PODS}/a/status`, { status: { conditions: [marked] } });
  await scene.settle();
  assert.deepEqual((await statusOf(scene)).disruptedPods, disruptedPods);
  assert.equal((await evict(scene, 'b')).status, 429);
  await scene.advance(121);
  const after = await statusOf(scene);
  assert.deepEqual([after.disruptionsAllowed, after.disruptedPods], [1, undefined]);
  const pod = await scene.ok('GET', `${PODS}/a`);
  const { status: holds, reason } = pod.status.conditions.find(({ type }: Loose) => type === 'DisruptionTarget');
  assert.deepEqual([holds, reason], ['False', undefined]);
});

test("percentages count from the owner's replicas, for kinds with a scale subresource", async (t) => {
  const scene = await startClusterScene(t);
  await scene.node('node-1');
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  await scene.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'pools.example.org' },
    spec: {
      group: 'example.org',
      scope: 'Namespaced',
      names: { plural: 'pools', kind: 'Pool' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
        },
      ],
    },
  });
  await scene.settle();
  const pool = await scene.ok('POST', '/apis/example.org/v1/namespaces/default/pools', {
    apiVersion: 'example.org/v1',
    kind: 'Pool',
    metadata: { name: 'pool' },
    spec: { replicas: 4 },
  });
  const { uid } = pool.metadata;
  const ownerReferences = [{ apiVersion: 'example.org/v1', kind: 'Pool', name: 'pool', uid, controller: true }];
  for (const name of ['a', 'b', 'c']) {
    await scene.pod(name, { ...web, ownerReferences });
    await scene.run(name);
  }
  await budget(scene, { maxUnavailable: '50%' });
  const { expectedPods, desiredHealthy, disruptionsAllowed } = await statusOf(scene);
  assert.deepEqual([expectedPods, desiredHealthy, disruptionsAllowed], [4, 2, 1]);

  const orphaned = [{ ...ownerReferences[0], name: 'gone', uid: 'gone' }];
  await scene.pod('d', { ...web, ownerReferences: orphaned });
  const failed = await statusOf(scene);
  assert.equal(failed.disruptionsAllowed, 0);
  const { reason, message } = failed.conditions[0];
  assert.deepEqual([reason, message], ['SyncFailed', 'found no controllers for pod "d"']);
  assert.equal((await evict(scene, 'a')).status, 429);
});
