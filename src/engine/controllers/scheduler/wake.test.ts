/** Tests of the cluster state, and of the events that may help waiting pods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClusterState } from '#engine/controllers/scheduler/cluster-state.ts';
import type { RefusalCause, ClusterView } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { readPodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { RefusalCache } from '#engine/controllers/scheduler/refusal-cache.ts';
import { aCluster, aNode, aPod, type NodeOptions } from '#engine/controllers/scheduler/testing/builders.ts';
import {
  type ClusterEvent,
  mayHelp,
  NAMESPACE_CHANGED,
  nodeEvent,
  placedPodEvent,
  STORAGE_CHANGED,
} from '#engine/controllers/scheduler/wake.ts';

const freed = (cpu: string): ClusterEvent => {
  const [view] = aCluster({ nodes: [aNode('a', { allocatable: { cpu } })] }).nodes;
  return { freedNode: view! };
};
const changed = (old: NodeOptions, next: NodeOptions) => nodeEvent(aNode('a', old), aNode('a', next));
const TAINT = { key: 't', effect: 'NoSchedule' } as const;

const cases: Record<string, { waits: RefusalCause[]; event: ClusterEvent | undefined; want: boolean }> = {
  'enough freed resources help a pod that lacks them': { waits: ['resources'], event: freed('2'), want: true },
  'too few freed resources do not help': { waits: ['resources'], event: freed('1'), want: false },
  'freed resources do not help a pod that waits for a taint': { waits: ['taints'], event: freed('2'), want: false },
  'a pod that leaves helps a pod with anti-affinity': { waits: ['pod-affinity'], event: freed('1'), want: true },
  'a new node helps': { waits: ['nodes', 'taints'], event: nodeEvent(undefined, aNode('a')), want: true },
  'a heartbeat does not help': { waits: ['nodes', 'taints'], event: changed({}, {}), want: false },
  'a removed taint helps': { waits: ['taints'], event: changed({ taints: [TAINT] }, {}), want: true },
  'a removed taint does not help a pod that lacks resources': {
    waits: ['resources'],
    event: changed({ taints: [TAINT] }, {}),
    want: false,
  },
  uncordoned: { waits: ['unschedulable'], event: changed({ unschedulable: true }, {}), want: true },
  'a new node label helps': { waits: ['node-affinity'], event: changed({}, { labels: { disk: 'ssd' } }), want: true },
  'more allocatable resources help': {
    waits: ['resources'],
    event: changed({}, { allocatable: { cpu: '64' } }),
    want: true,
  },
  'a deleted node helps a pod with spread constraints': {
    waits: ['spread'],
    event: nodeEvent(aNode('a'), undefined),
    want: true,
  },
  'a placed pod helps a pod with affinity': {
    waits: ['pod-affinity'],
    event: placedPodEvent(aPod('x'), aPod('x', { nodeName: 'a' })),
    want: true,
  },
  'a status update of a pod does not help': {
    waits: ['pod-affinity'],
    event: placedPodEvent(aPod('x', { nodeName: 'a' }), aPod('x', { nodeName: 'a', status: { phase: 'Running' } })),
    want: false,
  },
  'a change of its claim helps': {
    waits: ['volumes'],
    event: { claim: { namespace: 'default', name: 'data' } },
    want: true,
  },
  'a claim of the same name in another namespace does not help': {
    waits: ['volumes'],
    event: { claim: { namespace: 'x', name: 'data' } },
    want: false,
  },
  'a change of a volume helps': { waits: ['volumes'], event: STORAGE_CHANGED, want: true },
  'a change of a namespace does not help a pod that lacks resources': {
    waits: ['resources'],
    event: NAMESPACE_CHANGED,
    want: false,
  },
};

for (const [sentence, { waits, event, want }] of Object.entries(cases)) {
  test(`wake: ${sentence}`, () => {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    const facts = readPodFacts(aPod('new', { requests: { cpu: '1500m' }, volumes }));
    assert.equal(event !== undefined && mayHelp(event, { facts, causes: new Set(waits) }), want);
  });
}

const cpuOn = (state: ClusterState, node: string) => state.usage(node)?.requested.get('cpu') ?? 0;
const key = 'default/p';
const options = { requests: { cpu: '1' } };

test('state: an assumed pod counts at once, and only once', () => {
  const state = new ClusterState();
  state.setNode('a', aNode('a'));
  const waiting = aPod('p', options);
  state.assume(key, readPodFacts(waiting), 'a');
  assert.equal(cpuOn(state, 'a'), 1000);
  state.setPod(key, { ...waiting, status: { phase: 'Pending' } });
  assert.equal(cpuOn(state, 'a'), 1000, 'the cache does not contain the binding yet');
  assert.equal(state.setPod(key, aPod('p', { ...options, nodeName: 'a' })), undefined);
  assert.equal(cpuOn(state, 'a'), 1000);
  assert.equal(state.forgetAssumed(key), undefined, 'bound is bound');
  assert.equal(state.setPod(key, aPod('p', { ...options, nodeName: 'a', status: { phase: 'Failed' } })), 'a');
  assert.equal(cpuOn(state, 'a'), 0);
});

test('state: an assumed pod no longer counts when it is deleted or replaced', () => {
  const state = new ClusterState();
  state.setNode('a', aNode('a'));
  const facts = readPodFacts(aPod('p', options));
  state.assume(key, facts, 'a');
  assert.equal(state.setPod(key, undefined), 'a');
  state.assume(key, facts, 'a');
  assert.equal(state.setPod(key, aPod('p', { metadata: { uid: 'another' } })), 'a');
  state.assume(key, facts, 'a');
  assert.equal(state.forgetAssumed(key), 'a');
  assert.equal(cpuOn(state, 'a'), 0);
});

test('state: pods on a missing node count when the node appears', () => {
  const state = new ClusterState();
  state.setPod(key, aPod('p', { ...options, nodeName: 'a' }));
  assert.equal(state.nodes.length, 0);
  state.setNode('a', aNode('a'));
  assert.deepEqual(
    state.nodes.map(({ name, requested }) => [name, requested.get('cpu')]),
    [['a', 1000]],
  );
  state.setNode('a', undefined);
  state.setPod(key, undefined);
  assert.equal(state.usage('a'), undefined, 'the unused entry is removed');
});

test('equal pods that fit nowhere are evaluated once, until the cluster changes', () => {
  let generation = 1;
  let evaluations = 0;
  const { nodes, ...rest } = aCluster({ nodes: [aNode('a')] });
  const cluster: ClusterView = {
    ...rest,
    get nodes() {
      evaluations++;
      return nodes;
    },
  };
  const refusals = new RefusalCache(() => generation);
  const schedule = (name: string, cpu: string) =>
    refusals.schedule(readPodFacts(aPod(name, { requests: { cpu } })), cluster).node;
  for (let i = 0; i < 1000; i++) assert.equal(schedule(`p-${i}`, '64'), undefined);
  const once = evaluations;
  assert.equal(schedule('other', '65'), undefined);
  assert.equal(evaluations, 2 * once, 'a different pod is evaluated again');
  generation++;
  assert.equal(schedule('again', '64'), undefined);
  assert.equal(evaluations, 3 * once);
});
