/** What is kept of the cluster, and what wakes pods that wait. */
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

const room = (cpu: string): ClusterEvent => {
  const [view] = aCluster({ nodes: [aNode('a', { allocatable: { cpu } })] }).nodes;
  return { freedNode: view! };
};
const changed = (old: NodeOptions, next: NodeOptions) => nodeEvent(aNode('a', old), aNode('a', next));
const TAINT = { key: 't', effect: 'NoSchedule' } as const;

const cases: Record<string, { waits: RefusalCause[]; happening: ClusterEvent | undefined; want: boolean }> = {
  'room, for who lacks it': { waits: ['resources'], happening: room('2'), want: true },
  'room that is too little': { waits: ['resources'], happening: room('1'), want: false },
  'room, for who lacks none': { waits: ['taints'], happening: room('2'), want: false },
  'a pod that leaves, for who keeps apart': { waits: ['pod-affinity'], happening: room('1'), want: true },
  'a new node': { waits: ['nodes', 'taints'], happening: nodeEvent(undefined, aNode('a')), want: true },
  'a heartbeat': { waits: ['nodes', 'taints'], happening: changed({}, {}), want: false },
  'a taint that goes': { waits: ['taints'], happening: changed({ taints: [TAINT] }, {}), want: true },
  'a taint that goes, for who lacks room': {
    waits: ['resources'],
    happening: changed({ taints: [TAINT] }, {}),
    want: false,
  },
  uncordoned: { waits: ['unschedulable'], happening: changed({ unschedulable: true }, {}), want: true },
  'a label': { waits: ['node-affinity'], happening: changed({}, { labels: { disk: 'ssd' } }), want: true },
  'a bigger node': { waits: ['resources'], happening: changed({}, { allocatable: { cpu: '64' } }), want: true },
  'a node that goes, for who is to be spread': {
    waits: ['spread'],
    happening: nodeEvent(aNode('a'), undefined),
    want: true,
  },
  'a pod that comes, for who wants it near': {
    waits: ['pod-affinity'],
    happening: placedPodEvent(aPod('x'), aPod('x', { nodeName: 'a' })),
    want: true,
  },
  'a pod that only reports': {
    waits: ['pod-affinity'],
    happening: placedPodEvent(aPod('x', { nodeName: 'a' }), aPod('x', { nodeName: 'a', status: { phase: 'Running' } })),
    want: false,
  },
  'its claim': { waits: ['volumes'], happening: { claim: { namespace: 'default', name: 'data' } }, want: true },
  'a claim of the same name elsewhere': {
    waits: ['volumes'],
    happening: { claim: { namespace: 'x', name: 'data' } },
    want: false,
  },
  'a volume': { waits: ['volumes'], happening: STORAGE_CHANGED, want: true },
  'a namespace, for who lacks room': { waits: ['resources'], happening: NAMESPACE_CHANGED, want: false },
};

for (const [sentence, { waits, happening, want }] of Object.entries(cases)) {
  test(`wake: ${sentence}`, () => {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    const facts = readPodFacts(aPod('new', { requests: { cpu: '1500m' }, volumes }));
    assert.equal(happening !== undefined && mayHelp(happening, { facts, causes: new Set(waits) }), want);
  });
}

const cpuOn = (state: ClusterState, node: string) => state.usage(node)?.requested.get('cpu') ?? 0;
const key = 'default/p';
const wish = { requests: { cpu: '1' } };

test('state: a pod counts from the moment it was meant for a node, and once', () => {
  const state = new ClusterState();
  state.setNode('a', aNode('a'));
  const waiting = aPod('p', wish);
  state.assume(key, readPodFacts(waiting), 'a');
  assert.equal(cpuOn(state, 'a'), 1000);
  state.setPod(key, { ...waiting, status: { phase: 'Pending' } });
  assert.equal(cpuOn(state, 'a'), 1000, 'the API does not show it yet');
  assert.equal(state.setPod(key, aPod('p', { ...wish, nodeName: 'a' })), undefined);
  assert.equal(cpuOn(state, 'a'), 1000);
  assert.equal(state.forgetAssumed(key), undefined, 'bound is bound');
  assert.equal(state.setPod(key, aPod('p', { ...wish, nodeName: 'a', status: { phase: 'Failed' } })), 'a');
  assert.equal(cpuOn(state, 'a'), 0);
});

test('state: what a pod was meant for is free again when it goes, or another takes its name', () => {
  const state = new ClusterState();
  state.setNode('a', aNode('a'));
  const facts = readPodFacts(aPod('p', wish));
  state.assume(key, facts, 'a');
  assert.equal(state.setPod(key, undefined), 'a');
  state.assume(key, facts, 'a');
  assert.equal(state.setPod(key, aPod('p', { metadata: { uid: 'another' } })), 'a');
  state.assume(key, facts, 'a');
  assert.equal(state.forgetAssumed(key), 'a');
  assert.equal(cpuOn(state, 'a'), 0);
});

test('state: pods on a node that is not there yet count when it comes', () => {
  const state = new ClusterState();
  state.setPod(key, aPod('p', { ...wish, nodeName: 'a' }));
  assert.equal(state.nodes.length, 0);
  state.setNode('a', aNode('a'));
  assert.deepEqual(
    state.nodes.map(({ name, requested }) => [name, requested.get('cpu')]),
    [['a', 1000]],
  );
  state.setNode('a', undefined);
  state.setPod(key, undefined);
  assert.equal(state.usage('a'), undefined, 'nothing is left of it');
});

test('thousands of pods alike that fit nowhere are looked at once, until something changes', () => {
  let generation = 1;
  let looks = 0;
  const { nodes, ...rest } = aCluster({ nodes: [aNode('a')] });
  const cluster: ClusterView = {
    ...rest,
    get nodes() {
      looks++;
      return nodes;
    },
  };
  const refusals = new RefusalCache(() => generation);
  const look = (name: string, cpu: string) =>
    refusals.schedule(readPodFacts(aPod(name, { requests: { cpu } })), cluster).node;
  for (let i = 0; i < 1000; i++) assert.equal(look(`p-${i}`, '64'), undefined);
  const once = looks;
  assert.equal(look('other', '65'), undefined);
  assert.equal(looks, 2 * once, 'another one is another matter');
  generation++;
  assert.equal(look('again', '64'), undefined);
  assert.equal(looks, 3 * once);
});
