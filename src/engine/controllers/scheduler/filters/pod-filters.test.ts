/** Tests of pod affinity and spreading: the nodes that remain. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeFilter } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { podAffinityFilter } from '#engine/controllers/scheduler/filters/pod-affinity.ts';
import { spreadFilter } from '#engine/controllers/scheduler/filters/spread.ts';
import { readPodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import {
  aCluster,
  aNode,
  aPod,
  type ClusterOptions,
  type NodeOptions,
  type PodOptions,
} from '#engine/controllers/scheduler/testing/builders.ts';

/** Nodes a and b in zone x, c in zone y. */
const zone = (value: string, options: NodeOptions = {}): NodeOptions => ({
  ...options,
  labels: { zone: value, ...options.labels },
});
const NODES = [aNode('a', zone('x')), aNode('b', zone('x')), aNode('c', zone('y'))];

interface Case extends ClusterOptions {
  readonly pod: PodOptions;
  /** For each node in order: its name if the pod fits, otherwise the short form of the reason. */
  readonly want: string[];
}

function run(name: string, filter: NodeFilter, words: Record<string, string>, cases: Record<string, Case>): void {
  for (const [sentence, { pod, want, nodes = NODES, ...cluster }] of Object.entries(cases)) {
    test(`${name}: ${sentence}`, () => {
      const view = aCluster({ nodes, ...cluster });
      const check = filter(readPodFacts(aPod('new', pod)), view);
      assert.ok(check === undefined || typeof check === 'function');
      const found = view.nodes.map((node) => {
        const reason = check?.(node)?.reasons[0];
        return reason === undefined ? node.name : (words[reason] ?? reason);
      });
      assert.deepEqual(found, want);
    });
  }
}

const web = { labelSelector: { matchLabels: { app: 'web' } } };
const affinity = (...terms: object[]): PodOptions => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms as never } },
});
const antiAffinity = (...terms: object[]): PodOptions => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms as never } },
});
const BY_NODE = { topologyKey: 'kubernetes.io/hostname' };
const BY_ZONE = { topologyKey: 'zone' };
const on = (node: string, options: PodOptions = {}) =>
  aPod(`on-${node}-${Object.values(options.labels ?? {}).join('-')}`, {
    labels: { app: 'web' },
    nodeName: node,
    ...options,
  });

run(
  'pod affinity',
  podAffinityFilter,
  {
    "node(s) didn't match pod affinity rules": 'no affinity',
    "node(s) didn't match pod anti-affinity rules": 'anti-affinity',
    "node(s) didn't satisfy existing pods anti-affinity rules": 'existing anti-affinity',
  },
  {
    'accepts all nodes for a pod without affinity': { pod: {}, pods: [on('a')], want: ['a', 'b', 'c'] },
    'affinity by node accepts the node of the selected pod': {
      pod: affinity({ ...web, ...BY_NODE }),
      pods: [on('a')],
      want: ['a', 'no affinity', 'no affinity'],
    },
    'affinity by zone accepts the zone of the selected pod': {
      pod: affinity({ ...web, ...BY_ZONE }),
      pods: [on('a')],
      want: ['a', 'b', 'no affinity'],
    },
    'affinity refuses all nodes if it selects no pod': {
      pod: affinity({ ...web, ...BY_ZONE }),
      want: ['no affinity', 'no affinity', 'no affinity'],
    },
    'affinity accepts all nodes for the first pod of a group that selects itself': {
      pod: { ...affinity({ ...web, ...BY_ZONE }), labels: { app: 'web' } },
      want: ['a', 'b', 'c'],
    },
    'the first pod of a group still needs the topology label': {
      pod: { ...affinity({ ...web, ...BY_ZONE }), labels: { app: 'web' } },
      nodes: [aNode('a', zone('x')), aNode('b')],
      want: ['a', 'no affinity'],
    },
    'all terms must select the same pod': {
      pod: affinity({ ...web, ...BY_ZONE }, { labelSelector: { matchLabels: { tier: 'db' } }, ...BY_ZONE }),
      pods: [on('a'), on('c', { labels: { app: 'web', tier: 'db' } })],
      want: ['no affinity', 'no affinity', 'c'],
    },
    'pods of another namespace do not count': {
      pod: affinity({ ...web, ...BY_ZONE }),
      pods: [on('a', { namespace: 'other' })],
      want: ['no affinity', 'no affinity', 'no affinity'],
    },
    'pods of a named namespace count': {
      pod: affinity({ ...web, ...BY_ZONE, namespaces: ['other'] }),
      pods: [on('a', { namespace: 'other' })],
      want: ['a', 'b', 'no affinity'],
    },
    'pods of a selected namespace count': {
      pod: affinity({ ...web, ...BY_ZONE, namespaceSelector: { matchLabels: { team: 'one' } } }),
      pods: [on('a', { namespace: 'other' }), on('c', { namespace: 'third' })],
      namespaces: { other: { team: 'one' }, third: { team: 'two' } },
      want: ['a', 'b', 'no affinity'],
    },
    'an empty namespace selector selects all': {
      pod: affinity({ ...web, ...BY_ZONE, namespaceSelector: {} }),
      pods: [on('c', { namespace: 'third' })],
      want: ['no affinity', 'no affinity', 'c'],
    },
    'anti-affinity by node refuses the node of the selected pod': {
      pod: antiAffinity({ ...web, ...BY_NODE }),
      pods: [on('a')],
      want: ['anti-affinity', 'b', 'c'],
    },
    'anti-affinity by zone refuses the zone of the selected pod': {
      pod: antiAffinity({ ...web, ...BY_ZONE }),
      pods: [on('a')],
      want: ['anti-affinity', 'anti-affinity', 'c'],
    },
    'anti-affinity ignores nodes without the topology label': {
      pod: antiAffinity({ ...web, ...BY_ZONE }),
      pods: [on('a')],
      nodes: [aNode('a'), aNode('b', zone('x'))],
      want: ['a', 'b'],
    },
    'the anti-affinity of an existing pod excludes a new pod': {
      pod: { labels: { app: 'web' } },
      pods: [on('a', { labels: { app: 'db' }, ...antiAffinity({ ...web, ...BY_ZONE }) })],
      want: ['existing anti-affinity', 'existing anti-affinity', 'c'],
    },
    'the anti-affinity of an existing pod ignores pods that it does not select': {
      pod: { labels: { app: 'cache' } },
      pods: [on('a', { labels: { app: 'db' }, ...antiAffinity({ ...web, ...BY_ZONE }) })],
      want: ['a', 'b', 'c'],
    },
    'the anti-affinity of an existing pod ignores other namespaces': {
      pod: { labels: { app: 'web' }, namespace: 'other' },
      pods: [on('a', { labels: { app: 'db' }, ...antiAffinity({ ...web, ...BY_ZONE }) })],
      want: ['a', 'b', 'c'],
    },
    'matchLabelKeys selects only pods with the same value of the label': {
      pod: {
        ...antiAffinity({ ...web, ...BY_NODE, matchLabelKeys: ['version'] }),
        labels: { app: 'web', version: '2' },
      },
      pods: [on('a', { labels: { app: 'web', version: '1' } }), on('b', { labels: { app: 'web', version: '2' } })],
      want: ['a', 'anti-affinity', 'c'],
    },
  },
);

const spread = (constraint: object = {}, labels: Record<string, string> = { app: 'web' }): PodOptions => ({
  labels,
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', ...web, ...constraint },
  ],
});
const TWO_ON_X = [on('a'), on('b')];

run(
  'spread',
  spreadFilter,
  {
    "node(s) didn't match pod topology spread constraints": 'skewed',
    "node(s) didn't match pod topology spread constraints (missing required label)": 'no label',
  },
  {
    'accepts all nodes for a pod without constraints': { pod: {}, pods: TWO_ON_X, want: ['a', 'b', 'c'] },
    'accepts all nodes of an empty cluster': { pod: spread(), want: ['a', 'b', 'c'] },
    'accepts nodes within the skew': { pod: spread({ maxSkew: 3 }), pods: TWO_ON_X, want: ['a', 'b', 'c'] },
    'refuses nodes beyond the skew': { pod: spread(), pods: TWO_ON_X, want: ['skewed', 'skewed', 'c'] },
    'a constraint by hostname counts pods per node': {
      pod: spread({ topologyKey: 'kubernetes.io/hostname' }),
      pods: TWO_ON_X,
      want: ['skewed', 'skewed', 'c'],
    },
    'a pod that does not select itself does not add to the skew': {
      pod: spread({}, {}),
      pods: [on('a')],
      want: ['a', 'b', 'c'],
    },
    'pods under deletion do not count': {
      pod: spread(),
      pods: [on('a', { metadata: { deletionTimestamp: 'now' } })],
      want: ['a', 'b', 'c'],
    },
    'pods of other namespaces do not count': {
      pod: spread(),
      pods: [on('a', { namespace: 'other' }), on('b', { namespace: 'other' })],
      want: ['a', 'b', 'c'],
    },
    'refuses nodes without the topology label': {
      pod: spread(),
      nodes: [aNode('a', zone('x')), aNode('b')],
      want: ['a', 'no label'],
    },
    'minDomains counts missing domains as empty': {
      pod: spread({ minDomains: 3 }),
      pods: [on('a'), on('c')],
      want: ['skewed', 'skewed', 'skewed'],
    },
    "nodes that the pod's affinity excludes do not count": {
      pod: { ...spread(), nodeSelector: { zone: 'x' } },
      pods: [on('a')],
      want: ['a', 'b', 'c'],
    },
    'excluded nodes count with nodeAffinityPolicy Ignore': {
      pod: { ...spread({ nodeAffinityPolicy: 'Ignore' }), nodeSelector: { zone: 'x' } },
      pods: [on('a')],
      want: ['skewed', 'skewed', 'c'],
    },
    'tainted nodes count': {
      pod: spread(),
      nodes: [aNode('a', zone('x')), aNode('c', zone('y', { taints: [{ key: 't', effect: 'NoSchedule' }] }))],
      pods: [on('a')],
      want: ['skewed', 'c'],
    },
    'tainted nodes do not count with nodeTaintsPolicy Honor': {
      pod: spread({ nodeTaintsPolicy: 'Honor' }),
      nodes: [aNode('a', zone('x')), aNode('c', zone('y', { taints: [{ key: 't', effect: 'NoSchedule' }] }))],
      pods: [on('a')],
      want: ['a', 'c'],
    },
    'matchLabelKeys: each version is spread separately': {
      pod: spread({ matchLabelKeys: ['version'] }, { app: 'web', version: '2' }),
      pods: [on('a', { labels: { app: 'web', version: '1' } })],
      want: ['a', 'b', 'c'],
    },
  },
);
