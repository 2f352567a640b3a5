/** Tests of the choice of a node, and of the message if there is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitErrorMessage } from '#engine/controllers/scheduler/fit-error.ts';
import { resolvableRefusal, unresolvableRefusal } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { readPodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { podRequests, scoredRequests } from '#engine/controllers/scheduler/requests.ts';
import { schedulePod } from '#engine/controllers/scheduler/schedule-pod.ts';
import {
  aCluster,
  aNode,
  aPod,
  type ClusterOptions,
  type PodOptions,
} from '#engine/controllers/scheduler/testing/builders.ts';

interface Case extends ClusterOptions {
  readonly pod?: PodOptions;
  readonly before?: string;
  /** A node, or the message. */
  readonly want: string;
}

const on = (node: string, name: string, options: PodOptions = {}) => aPod(name, { nodeName: node, ...options });
const A = aNode('a');
const B = aNode('b');
const inZone = (name: string, zone: string) => aNode(name, { labels: { zone } });
const preferring = (key: string, weight = 10): PodOptions => ({
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight, preference: { matchExpressions: [{ key, operator: 'Exists' }] } },
      ],
    },
  },
});
const preferringPods = (kind: 'podAffinity' | 'podAntiAffinity', app: string): PodOptions => ({
  affinity: {
    [kind]: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 50, podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: { app } } } },
      ],
    },
  },
});

const cases: Record<string, Case> = {
  'chooses the first of equal nodes by name': { nodes: [B, A], want: 'a' },
  'chooses the least used node': {
    nodes: [A, B],
    pods: [on('a', 'x', { requests: { cpu: '1', memory: '1Gi' } })],
    want: 'b',
  },
  'counts pods without requests': { nodes: [A, B], pods: [on('a', 'x')], want: 'b' },
  'compares usage by share, not by amount': {
    nodes: [aNode('a', { allocatable: { cpu: '16', memory: '64Gi' } }), B],
    pods: [
      on('a', 'x', { requests: { cpu: '2', memory: '4Gi' } }),
      on('b', 'y', { requests: { cpu: '2', memory: '4Gi' } }),
    ],
    want: 'a',
  },
  'chooses the node with fewer pods if usage is equal': {
    nodes: [A, B],
    pods: [
      on('a', 'x', { requests: { cpu: '50m', memory: '50Mi' } }),
      on('a', 'y', { requests: { cpu: '50m', memory: '50Mi' } }),
      on('b', 'z', { requests: { cpu: '100m', memory: '100Mi' } }),
    ],
    want: 'b',
  },
  'honours preferred node affinity': {
    pod: preferring('disk'),
    nodes: [A, aNode('b', { labels: { disk: 'ssd' } })],
    pods: [on('b', 'x', { requests: { cpu: '1' } })],
    want: 'b',
  },
  'avoids an untolerated PreferNoSchedule taint': {
    nodes: [aNode('a', { taints: [{ key: 't', effect: 'PreferNoSchedule' }] }), B],
    want: 'b',
  },
  'ignores a tolerated PreferNoSchedule taint': {
    pod: { tolerations: [{ operator: 'Exists' }] },
    nodes: [aNode('a', { taints: [{ key: 't', effect: 'PreferNoSchedule' }] }), B],
    want: 'a',
  },
  'honours preferred pod affinity': {
    pod: preferringPods('podAffinity', 'web'),
    nodes: [inZone('a', 'x'), inZone('b', 'y')],
    pods: [on('b', 'x', { labels: { app: 'web' } })],
    want: 'b',
  },
  'honours preferred pod anti-affinity': {
    pod: preferringPods('podAntiAffinity', 'web'),
    nodes: [inZone('a', 'x'), inZone('b', 'y')],
    pods: [on('a', 'x', { labels: { app: 'web' } }), on('b', 'y', { requests: { cpu: '2' } })],
    want: 'b',
  },
  'honours the preferred affinity of existing pods': {
    pod: { labels: { app: 'web' } },
    nodes: [inZone('a', 'x'), inZone('b', 'y')],
    pods: [on('b', 'x', preferringPods('podAffinity', 'web'))],
    want: 'b',
  },
  'spreads the pods of one owner': {
    pod: { owner: 'set' },
    nodes: [A, B],
    pods: [
      on('a', 'x', { owner: 'set', requests: { cpu: '10m', memory: '1Mi' } }),
      on('b', 'y', { requests: { cpu: '2' } }),
    ],
    want: 'b',
  },
  'honours ScheduleAnyway constraints': {
    pod: {
      labels: { app: 'web' },
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'zone',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    },
    nodes: [inZone('a', 'x'), inZone('b', 'x'), inZone('c', 'y')],
    pods: [
      on('a', 'x', { labels: { app: 'web' }, requests: { cpu: '10m', memory: '1Mi' } }),
      on('c', 'y', { requests: { cpu: '1' } }),
    ],
    want: 'c',
  },
  'keeps the node that its volumes are created for': {
    nodes: [A, B],
    pods: [on('b', 'x', { requests: { cpu: '1' } })],
    before: 'b',
    want: 'b',
  },
  'chooses another node if the pod no longer fits there': {
    pod: { requests: { cpu: '4' } },
    nodes: [A, B],
    pods: [on('b', 'x', { requests: { cpu: '1' } })],
    before: 'b',
    want: 'a',
  },
  'reports that there are no nodes': { nodes: [], want: 'no nodes available to schedule pods' },
  'reports the first reason of each node, sorted': {
    pod: { requests: { memory: '32Gi' } },
    nodes: [
      aNode('a', { taints: [{ key: 'key', value: 'value', effect: 'NoSchedule' }] }),
      B,
      aNode('c', { taints: [{ key: 'key', value: 'value', effect: 'NoSchedule' }] }),
    ],
    want: '0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint {key: value}. preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.',
  },
  'reports several reasons of one node': {
    pod: { requests: { cpu: '32', memory: '32Gi' } },
    nodes: [A],
    want: '0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
  },
  'reports a cordoned node': {
    nodes: [
      aNode('a', { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] }),
    ],
    want: '0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
  },
  'reports a missing claim': {
    pod: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] },
    nodes: [A, B],
    want: '0/2 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
  },
  'reports preemptionPolicy Never': {
    pod: { requests: { cpu: '32' }, preemptionPolicy: 'Never' },
    nodes: [A],
    want: '0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.',
  },
};

for (const [sentence, { pod = {}, before, want, ...cluster }] of Object.entries(cases)) {
  test(`schedule: ${sentence}`, () => {
    const outcome = schedulePod(readPodFacts(aPod('new', pod)), aCluster(cluster), before);
    assert.equal(outcome.node ?? outcome.message, want);
  });
}

test('sorts reasons as strings, including their counts', () => {
  const refusals = [
    ...Array.from({ length: 10 }, () => resolvableRefusal('b')),
    unresolvableRefusal('a'),
    unresolvableRefusal('a'),
  ];
  const message = fitErrorMessage({ total: 12, refusals, preemptionPolicy: 'Never' });
  assert.equal(message, '0/12 nodes are available: 10 b, 2 a. preemption: not eligible due to preemptionPolicy=Never.');
});

const wants = (cpu: string, restartPolicy?: 'Always') => ({
  name: 'c',
  resources: { requests: { cpu } },
  restartPolicy,
});

const requests: Record<string, { spec: object; want: number }> = {
  'containers add up': { spec: { containers: [wants('1'), wants('250m')] }, want: 1250 },
  'init containers count if they need more': {
    spec: { containers: [wants('1')], initContainers: [wants('3'), wants('2')] },
    want: 3000,
  },
  'init containers do not count if they need less': {
    spec: { containers: [wants('1')], initContainers: [wants('500m')] },
    want: 1000,
  },
  'sidecars add to the containers': {
    spec: { containers: [wants('1')], initContainers: [wants('2', 'Always')] },
    want: 3000,
  },
  'sidecars add to later init containers': {
    spec: { containers: [wants('1')], initContainers: [wants('2', 'Always'), wants('3')] },
    want: 5000,
  },
  'sidecars do not add to earlier init containers': {
    spec: { containers: [wants('1')], initContainers: [wants('3'), wants('1', 'Always')] },
    want: 3000,
  },
  'overhead is added': { spec: { containers: [wants('1')], overhead: { cpu: '100m' } }, want: 1100 },
  'a negative overhead does not count': { spec: { containers: [wants('1')], overhead: { cpu: '-100m' } }, want: 1000 },
  'a pod asks for more as a whole': {
    spec: { containers: [wants('1')], resources: { requests: { cpu: '2' } } },
    want: 2000,
  },
  'a limit of the whole pod is its request if no container has one': {
    spec: { containers: [{ name: 'c' }], resources: { limits: { cpu: '3' } } },
    want: 3000,
  },
  'fractions are rounded up': { spec: { containers: [wants('100u')] }, want: 1 },
};

for (const [sentence, { spec, want }] of Object.entries(requests)) {
  test(`requests: ${sentence}`, () => {
    assert.equal(podRequests(spec as never).get('cpu'), want);
  });
}

test('requests: a container without requests counts with defaults for scoring', () => {
  const scored = scoredRequests({ containers: [{ name: 'c', image: 'x' }] });
  assert.deepEqual(
    [...scored],
    [
      ['cpu', 100],
      ['memory', 209_715_200],
    ],
  );
});
