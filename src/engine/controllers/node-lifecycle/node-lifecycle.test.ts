/** Tests of the decisions about nodes and about the pods on them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideNode, type NodeWorld } from '#engine/controllers/node-lifecycle/decide-node.ts';
import { decidePodOnNode } from '#engine/controllers/node-lifecycle/decide-pod-on-node.ts';
import { updateHealth, type NodeHealth, type Outage, detectOutage } from '#engine/controllers/node-lifecycle/health.ts';
import type { EngineNode } from '#engine/controllers/kinds.ts';
import type { Taint } from '#engine/controllers/placement/taints.ts';
import { aNode, aPod, type PodOptions, stored } from '#engine/controllers/scheduler/testing/builders.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change } from '#runtime/plan.ts';

const NOW = 1_900_000_000_000;
const ago = (seconds: number) => timestamp(NOW - seconds * 1000);
const health = (silentSeconds: number, watchedSeconds = 1000): NodeHealth => ({
  uid: 'uid',
  sinceMs: NOW - watchedSeconds * 1000,
  lastSignMs: NOW - silentSeconds * 1000,
  heartbeat: undefined,
  renewTime: undefined,
});

type Ready = 'True' | 'False' | 'Unknown' | undefined;

function node(
  ready: Ready,
  { taints, cordoned = false }: { taints?: string[]; cordoned?: boolean } = {},
): Stored<EngineNode> {
  const conditions = ready === undefined ? [] : [{ type: 'Ready', status: ready, lastTransitionTime: ago(100) }];
  return aNode('a', { taints: taints?.map(taint), unschedulable: cordoned, status: { conditions } });
}

function taint(text: string): Taint {
  const [key = '', effect] = text.split(':');
  return {
    key: key.includes('/') ? key : `node.kubernetes.io/${key}`,
    effect: effect as Taint['effect'],
    timeAdded: ago(50),
  };
}

function describeChange(change: Change): string {
  assert.equal(change.do, 'patch');
  if (change.do !== 'patch') return '';
  const body = change.patch.body as {
    spec?: { taints: Taint[] | null };
    status?: { conditions: { type: string; reason: string }[] };
  };
  const taints = body.spec?.taints?.map(({ key, effect }) => `${key.replace('node.kubernetes.io/', '')}:${effect}`);
  const conditions = body.status?.conditions.map(({ type, reason }) => `${type} ${reason}`);
  const what = conditions ?? taints ?? ['no taints'];
  return `${what.join(', ')} (${change.reason ?? 'quiet'})`;
}

interface NodeCase {
  readonly node: Stored<EngineNode>;
  readonly silent?: number;
  readonly outage?: Outage;
  readonly want?: string;
  readonly again?: number;
}

const nodes: Record<string, NodeCase> = {
  'checks a ready node again when its grace period ends': { node: node('True'), silent: 10, again: 30_000 },
  'keeps a silent node within its grace period': { node: node('True'), silent: 39, again: 1000 },
  lost: {
    node: node('True'),
    silent: 40,
    want: 'Ready NodeStatusUnknown, MemoryPressure NodeStatusNeverUpdated, DiskPressure NodeStatusNeverUpdated, PIDPressure NodeStatusNeverUpdated (NodeNotReady)',
  },
  'declares a NotReady node lost': {
    node: node('False'),
    silent: 40,
    want: 'Ready NodeStatusUnknown, MemoryPressure NodeStatusNeverUpdated, DiskPressure NodeStatusNeverUpdated, PIDPressure NodeStatusNeverUpdated (quiet)',
  },
  'keeps a new node within the startup grace period': {
    node: node(undefined, { taints: ['not-ready:NoSchedule'] }),
    silent: 40,
    again: 20_000,
  },
  'declares a node lost that has not reported for a minute': {
    node: node(undefined),
    silent: 60,
    want: 'Ready NodeStatusNeverUpdated, MemoryPressure NodeStatusNeverUpdated, DiskPressure NodeStatusNeverUpdated, PIDPressure NodeStatusNeverUpdated (quiet)',
  },
  'removes the initial taint of a ready node': {
    node: node('True', { taints: ['not-ready:NoSchedule'] }),
    silent: 0,
    want: 'no taints (NodeReady)',
    again: 40_000,
  },
  'adds both taints to an unreachable node': {
    node: node('Unknown'),
    silent: 10,
    want: 'unreachable:NoSchedule, unreachable:NoExecute (quiet)',
    again: 30_000,
  },
  'replaces the unreachable taints of a NotReady node': {
    node: node('False', { taints: ['unreachable:NoSchedule', 'unreachable:NoExecute'] }),
    silent: 10,
    want: 'not-ready:NoSchedule, not-ready:NoExecute (NodeNotReady)',
    again: 30_000,
  },
  'keeps the taints of users': {
    node: node('True', {
      taints: ['example.org/gpu:NoSchedule', 'unreachable:NoExecute', 'memory-pressure:NoExecute'],
    }),
    silent: 0,
    want: 'example.org/gpu:NoSchedule, memory-pressure:NoExecute (NodeReady)',
    again: 40_000,
  },
  cordoned: {
    node: node('True', { cordoned: true }),
    silent: 0,
    want: 'unschedulable:NoSchedule (quiet)',
    again: 40_000,
  },
  'keeps the taint of a cordoned node': {
    node: node('True', { cordoned: true, taints: ['unschedulable:NoSchedule'] }),
    silent: 0,
    again: 40_000,
  },
  'evicts from no node while all are lost': {
    node: node('Unknown', { taints: ['unreachable:NoSchedule', 'unreachable:NoExecute'] }),
    silent: 10,
    outage: 'full',
    want: 'unreachable:NoSchedule (quiet)',
    again: 5000,
  },
  'evicts from no further node while most are lost': {
    node: node('Unknown'),
    silent: 10,
    outage: 'partial',
    want: 'unreachable:NoSchedule (quiet)',
    again: 5000,
  },
  'continues evictions that have begun while most nodes are lost': {
    node: node('Unknown', { taints: ['unreachable:NoSchedule', 'unreachable:NoExecute'] }),
    silent: 10,
    outage: 'partial',
    again: 5000,
  },
};

for (const [sentence, { node: subject, silent = 0, outage = 'none', want, again }] of Object.entries(nodes)) {
  test(`node: ${sentence}`, () => {
    const world: NodeWorld = { node: subject, health: health(silent), outage, nowMs: NOW };
    const { changes, requeueAfterMs } = decideNode(world);
    assert.deepEqual(changes.map(describeChange), want === undefined ? [] : [want]);
    assert.equal(requeueAfterMs, again);
  });
}

interface PodCase {
  readonly pod?: PodOptions;
  readonly node: Stored<EngineNode>;
  readonly outage?: Outage;
  readonly watched?: number;
  readonly wasEvictionPending?: boolean;
  readonly want?: string[];
  readonly events?: string[];
  readonly again?: number;
}

const DOWN = node('Unknown', { taints: ['unreachable:NoSchedule', 'unreachable:NoExecute'] });
const tolerating = (tolerationSeconds?: number): PodOptions => ({
  tolerations: [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds }],
});
const readySince = (seconds: number): PodOptions => ({
  ...tolerating(),
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: ago(seconds) }] },
});
const EVICTED = ['patch DisruptionTarget', 'delete'];
const UNREADY = ['Warning NodeNotReady Node is not ready'];

const pods: Record<string, PodCase> = {
  'evicts at once without a toleration': { node: DOWN, want: EVICTED },
  'waits for tolerationSeconds': { node: DOWN, pod: tolerating(300), again: 250_000 },
  'evicts after tolerationSeconds': { node: DOWN, pod: tolerating(50), want: EVICTED },
  'never evicts with an unlimited toleration': { node: DOWN, pod: tolerating() },
  'treats negative tolerationSeconds as 0': { node: DOWN, pod: tolerating(-5), want: EVICTED },
  'uses the shortest toleration': {
    node: node('Unknown', { taints: ['unreachable:NoExecute', 'example.org/x:NoExecute'] }),
    pod: {
      tolerations: [
        ...tolerating(300).tolerations!,
        { key: 'example.org/x', operator: 'Exists', tolerationSeconds: 60 },
      ],
    },
    again: 10_000,
  },
  'does not evict for NoSchedule': { node: node('Unknown', { taints: ['unreachable:NoSchedule'] }) },
  'does not evict while all nodes are lost': { node: DOWN, outage: 'full', again: 5000 },
  'does not evict before the node was watched for the grace period': { node: DOWN, watched: 10, again: 30_000 },
  'evicts at once for the taints of users': {
    node: node('True', { taints: ['example.org/x:NoExecute'] }),
    watched: 10,
    want: EVICTED,
  },
  'ignores a pod under deletion': { node: DOWN, pod: { metadata: { deletionTimestamp: ago(1) } } },
  'ignores a pod that has ended': { node: DOWN, pod: { status: { phase: 'Succeeded' } } },
  'cancels the eviction when the node reports again': {
    node: node('True'),
    wasEvictionPending: true,
    events: ['Normal TaintManagerEviction Cancelling deletion of Pod default/p'],
  },
  'sets a ready pod on a lost node to not ready': {
    node: DOWN,
    pod: readySince(200),
    want: ['patch Ready'],
    events: UNREADY,
  },
  'sets a pod to not ready that became ready before its node became NotReady': {
    node: node('False'),
    pod: readySince(200),
    want: ['patch Ready'],
    events: UNREADY,
  },
  'keeps a pod that became ready after its node became NotReady': { node: node('False'), pod: readySince(50) },
  'keeps a ready pod before its node was watched for the grace period': {
    node: DOWN,
    pod: readySince(200),
    watched: 10,
    again: 30_000,
  },
};

for (const [
  sentence,
  { pod = {}, node: on, outage = 'none', watched, wasEvictionPending = false, ...wanted },
] of Object.entries(pods)) {
  test(`pod: ${sentence}`, () => {
    const { changes, events, requeueAfterMs } = decidePodOnNode({
      pod: aPod('p', pod),
      node: on,
      health: health(100, watched),
      outage,
      taintedSinceMs: ({ timeAdded = '' }) => Date.parse(timeAdded),
      wasEvictionPending,
      nowMs: NOW,
    });
    const described = changes.map((change) => {
      if (change.do !== 'patch') return change.do;
      return `patch ${(change.patch.body as { status: { conditions: { type: string }[] } }).status.conditions[0]?.type}`;
    });
    assert.deepEqual(described, wanted.want ?? []);
    assert.deepEqual(
      (events ?? []).map(({ type, reason, message }) => `${type} ${reason} ${message}`),
      wanted.events ?? [],
    );
    assert.equal(requeueAfterMs, wanted.again);
  });
}

const lease = (renewTime: string) =>
  stored({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: { renewTime } }, { name: 'a' });
const T1 = '2030-01-01T00:00:01.000000Z';
const T2 = '2030-01-01T00:00:02.000000Z';

test('health: only an observed change counts as a report', () => {
  const subject = node('True');
  let seen = updateHealth(undefined, subject, lease(T1), 1000);
  assert.deepEqual([seen.sinceMs, seen.lastSignMs], [1000, 1000], 'regardless of the age of the Lease');
  seen = updateHealth(seen, subject, lease(T1), 2000);
  assert.equal(seen.lastSignMs, 1000);
  seen = updateHealth(seen, subject, lease(T2), 3000);
  assert.equal(seen.lastSignMs, 3000);
  seen = updateHealth(seen, subject, lease(T1), 4000);
  assert.equal(seen.lastSignMs, 3000, 'an older renewTime does not count');
  seen = updateHealth(
    seen,
    aNode('a', { status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: T1 }] } }),
    undefined,
    5000,
  );
  assert.deepEqual([seen.sinceMs, seen.lastSignMs], [1000, 5000]);
  const recreated = { ...subject, metadata: { ...subject.metadata, uid: 'another' } };
  assert.equal(updateHealth(seen, recreated, lease(T2), 6000).sinceMs, 6000);
});

const outages: Record<string, { nodes: [Ready, silent: number][]; want: Outage }> = {
  'none without nodes': { nodes: [], want: 'none' },
  'none if all nodes are ready': {
    nodes: [
      ['True', 0],
      ['True', 20],
    ],
    want: 'none',
  },
  'none if one of two nodes is lost': {
    nodes: [
      ['Unknown', 60],
      ['True', 0],
    ],
    want: 'none',
  },
  all: {
    nodes: [
      ['Unknown', 60],
      ['False', 0],
    ],
    want: 'full',
  },
  'full if the only node is lost': { nodes: [['Unknown', 60]], want: 'full' },
  'full if all nodes are silent, even if not all are declared lost': {
    nodes: [
      ['Unknown', 40],
      ['True', 35],
    ],
    want: 'full',
  },
  'partial if three of five nodes are lost': {
    nodes: [
      ['Unknown', 60],
      ['Unknown', 60],
      ['Unknown', 60],
      ['True', 0],
      ['True', 0],
    ],
    want: 'partial',
  },
  'none if three of six nodes are lost': {
    nodes: [
      ['Unknown', 60],
      ['Unknown', 60],
      ['Unknown', 60],
      ['True', 0],
      ['True', 0],
      ['True', 0],
    ],
    want: 'none',
  },
};

for (const [sentence, { nodes: all, want }] of Object.entries(outages)) {
  test(`outage: ${sentence}`, () => {
    const seen = all.map(([ready, silent]) => [node(ready), health(silent)] as const);
    assert.equal(detectOutage(seen, NOW), want);
  });
}
