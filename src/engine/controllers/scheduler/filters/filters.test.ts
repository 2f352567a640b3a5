/** Which nodes each filter refuses, and in which words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeFilter } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { namedNodeFilter, nodeAffinityFilter } from '#engine/controllers/scheduler/filters/node-affinity.ts';
import { taintFilter, unschedulableFilter } from '#engine/controllers/scheduler/filters/node-state.ts';
import { portFilter, resourceFilter } from '#engine/controllers/scheduler/filters/resources.ts';
import { volumeFilter } from '#engine/controllers/scheduler/filters/volumes.ts';
import { readPodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import {
  aClaim,
  aCluster,
  aNode,
  aPod,
  type ClusterOptions,
  type NodeOptions,
  type PodOptions,
  stored,
} from '#engine/controllers/scheduler/testing/builders.ts';

interface Case {
  readonly pod?: PodOptions;
  /** The node `a`. */
  readonly node?: NodeOptions;
  readonly cluster?: ClusterOptions;
  /** Why it does not fit on `a`; nothing: it fits. */
  readonly want?: string | string[];
}

function run(name: string, filter: NodeFilter, cases: Record<string, Case>): void {
  for (const [sentence, { pod = {}, node = {}, cluster = {}, want }] of Object.entries(cases)) {
    test(`${name}: ${sentence}`, () => {
      const view = aCluster({ ...cluster, nodes: [aNode('a', node), ...(cluster.nodes ?? [])] });
      const check = filter(readPodFacts(aPod('new', pod)), view);
      if (typeof check === 'object') return assert.equal(check.noNodeReason, want);
      const refusal = check?.(view.nodes[0]!);
      assert.deepEqual(refusal?.reasons, want === undefined ? undefined : [want].flat());
    });
  }
}

const UNSCHEDULABLE = 'node(s) were unschedulable';

run('cordon', unschedulableFilter, {
  'an open node': {},
  'a cordoned node': { node: { unschedulable: true }, want: UNSCHEDULABLE },
  'tolerated by its taint': {
    node: { unschedulable: true },
    pod: { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] },
  },
  'tolerated like everything': { node: { unschedulable: true }, pod: { tolerations: [{ operator: 'Exists' }] } },
  'not by a toleration of another effect': {
    node: { unschedulable: true },
    pod: { tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] },
    want: UNSCHEDULABLE,
  },
});

const GPU = { key: 'gpu', value: 'yes', effect: 'NoSchedule' } as const;

run('taints', taintFilter, {
  none: {},
  'NoSchedule keeps away': { node: { taints: [GPU] }, want: 'node(s) had untolerated taint {gpu: yes}' },
  'NoExecute keeps away, without a value': {
    node: { taints: [{ key: 'down', effect: 'NoExecute' }] },
    want: 'node(s) had untolerated taint {down: }',
  },
  'PreferNoSchedule does not': { node: { taints: [{ ...GPU, effect: 'PreferNoSchedule' }] } },
  'tolerated by value': { node: { taints: [GPU] }, pod: { tolerations: [{ key: 'gpu', value: 'yes' }] } },
  'another value': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Equal', value: 'no' }] },
    want: 'node(s) had untolerated taint {gpu: yes}',
  },
  'tolerated whatever its value': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
  },
  'the effect must fit': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }] },
    want: 'node(s) had untolerated taint {gpu: yes}',
  },
  'only the first that is not tolerated is told': {
    node: { taints: [GPU, { key: 'b', effect: 'NoSchedule' }, { key: 'c', effect: 'NoSchedule' }] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
    want: 'node(s) had untolerated taint {b: }',
  },
});

const AFFINITY = "node(s) didn't match Pod's node affinity/selector";
const required = (...terms: object[]): PodOptions => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  },
});
const expression = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, values }],
});

run('node affinity', nodeAffinityFilter, {
  'nothing asked for': {},
  'a label that is there': { pod: { nodeSelector: { disk: 'ssd' } }, node: { labels: { disk: 'ssd' } } },
  'another value': { pod: { nodeSelector: { disk: 'ssd' } }, node: { labels: { disk: 'hdd' } }, want: AFFINITY },
  'all labels are needed': {
    pod: { nodeSelector: { disk: 'ssd', zone: 'x' } },
    node: { labels: { disk: 'ssd' } },
    want: AFFINITY,
  },
  'a name that every object inherits is no label': { pod: { nodeSelector: { constructor: 'x' } }, want: AFFINITY },
  In: { pod: required(expression('disk', 'In', 'ssd', 'nvme')), node: { labels: { disk: 'nvme' } } },
  'In, not there': { pod: required(expression('disk', 'In', 'ssd')), want: AFFINITY },
  'NotIn, not there': { pod: required(expression('disk', 'NotIn', 'hdd')) },
  'NotIn, there': {
    pod: required(expression('disk', 'NotIn', 'hdd')),
    node: { labels: { disk: 'hdd' } },
    want: AFFINITY,
  },
  Exists: { pod: required(expression('disk', 'Exists')), node: { labels: { disk: '' } } },
  DoesNotExist: { pod: required(expression('disk', 'DoesNotExist')), node: { labels: { disk: '' } }, want: AFFINITY },
  Gt: { pod: required(expression('gen', 'Gt', '6')), node: { labels: { gen: '7' } } },
  'Gt, equal': { pod: required(expression('gen', 'Gt', '7')), node: { labels: { gen: '7' } }, want: AFFINITY },
  'Gt, no number': { pod: required(expression('gen', 'Gt', '6')), node: { labels: { gen: 'new' } }, want: AFFINITY },
  Lt: { pod: required(expression('gen', 'Lt', '8')), node: { labels: { gen: '7' } } },
  'terms are alternatives': {
    pod: required(expression('disk', 'In', 'ssd'), expression('gen', 'Exists')),
    node: { labels: { gen: '1' } },
  },
  'expressions of a term must all hold': {
    pod: required({
      matchExpressions: [
        ...expression('disk', 'Exists').matchExpressions,
        ...expression('gen', 'Exists').matchExpressions,
      ],
    }),
    node: { labels: { gen: '1' } },
    want: AFFINITY,
  },
  'an empty term matches nothing': { pod: required({}), want: AFFINITY },
  'by name': { pod: required({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }) },
  'not by name': {
    pod: required({ matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['a'] }] }),
    want: AFFINITY,
  },
  'selector and affinity must both hold': {
    pod: { ...required(expression('gen', 'Exists')), nodeSelector: { disk: 'ssd' } },
    node: { labels: { gen: '1' } },
    want: AFFINITY,
  },
});

const named = (...values: string[]) => ({ key: 'metadata.name', operator: 'In', values });

run('named nodes', namedNodeFilter, {
  'nobody is named': { pod: required(expression('disk', 'Exists')) },
  'this one': { pod: required({ matchFields: [named('a', 'b')] }) },
  'another one': {
    pod: required({ matchFields: [named('b')] }),
    want: "node(s) didn't satisfy plugin(s) [NodeAffinity]",
  },
  'one of the terms names none': { pod: required({ matchFields: [named('b')] }, expression('disk', 'Exists')) },
  'names that exclude each other': {
    pod: required({ matchFields: [named('b'), named('c')] }),
    want: 'pod affinity terms conflict',
  },
});

const on = (name: string, wish: PodOptions = {}) => aPod(name, { nodeName: 'a', ...wish });
const KVM = 'devices.kubevirt.io/kvm';

run('resources', resourceFilter, {
  'nothing asked for': {},
  'all that there is': { pod: { requests: { cpu: '4', memory: '8Gi' } } },
  'a bit more': { pod: { requests: { cpu: '4001m' } }, want: 'Insufficient cpu' },
  'what others left': {
    pod: { requests: { cpu: '2' } },
    cluster: { pods: [on('x', { requests: { cpu: '2500m' } })] },
    want: 'Insufficient cpu',
  },
  'pods that ended need nothing': {
    pod: { requests: { cpu: '4' } },
    cluster: { pods: [on('x', { requests: { cpu: '2' }, status: { phase: 'Succeeded' } })] },
  },
  'everything that is short is told': {
    pod: { requests: { cpu: '5', memory: '9Gi' } },
    want: ['Insufficient cpu', 'Insufficient memory'],
  },
  'ephemeral storage': {
    pod: { requests: { 'ephemeral-storage': '1Gi' } },
    node: { allocatable: { 'ephemeral-storage': '100Mi' } },
    want: 'Insufficient ephemeral-storage',
  },
  'a device that the node has': { pod: { requests: { [KVM]: '1' } }, node: { allocatable: { [KVM]: '1k' } } },
  'a device that it does not have': { pod: { requests: { [KVM]: '1' } }, want: `Insufficient ${KVM}` },
  'a request for none of it': { pod: { requests: { [KVM]: '0' } } },
  'too many pods': { node: { allocatable: { pods: '1' } }, cluster: { pods: [on('x')] }, want: 'Too many pods' },
  'a node that says nothing takes none': { node: { status: { allocatable: {} } }, want: 'Too many pods' },
});

run('ports', portFilter, {
  'none wanted': { cluster: { pods: [on('x', { hostPort: 80 })] } },
  free: { pod: { hostPort: 81 }, cluster: { pods: [on('x', { hostPort: 80 })] } },
  taken: {
    pod: { hostPort: 80 },
    cluster: { pods: [on('x', { hostPort: 80 })] },
    want: "node(s) didn't have free ports for the requested pod ports",
  },
});

const uses = (...names: string[]): PodOptions => ({
  volumes: names.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
});
const WAITING = stored(
  { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', volumeBindingMode: 'WaitForFirstConsumer' },
  { name: 'late' },
);
const inZone = (zone: string) => ({
  required: { nodeSelectorTerms: [expression('zone', 'In', zone)] },
});
const volume = (name: string, spec: object) => stored({ apiVersion: 'v1', kind: 'PersistentVolume', spec }, { name });
const BOUND = aClaim('data', { volumeName: 'pv-1' }, { phase: 'Bound' });

run('volumes', volumeFilter, {
  'no claim': { pod: { volumes: [{ name: 'tmp', emptyDir: {} }] } },
  'a claim that is not there': { pod: uses('data'), want: 'persistentvolumeclaim "data" not found' },
  'one that is going': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', {}, { metadata: { deletionTimestamp: 'now' } })] },
    want: 'persistentvolumeclaim "data" is being deleted',
  },
  'one that lost its volume': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', { volumeName: 'pv-1' }, { phase: 'Lost' })] },
    want: 'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1"',
  },
  'not bound': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', {})] },
    want: 'pod has unbound immediate PersistentVolumeClaims',
  },
  'one of two not bound': {
    pod: uses('data', 'log'),
    cluster: { claims: [BOUND, aClaim('log', {})], volumes: [volume('pv-1', {})] },
    want: 'pod has unbound immediate PersistentVolumeClaims',
  },
  'bound, anywhere': { pod: uses('data'), cluster: { claims: [BOUND], volumes: [volume('pv-1', {})] } },
  'bound to a volume that is gone': {
    pod: uses('data'),
    cluster: { claims: [BOUND] },
    want: 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
  },
  'within reach': {
    pod: uses('data'),
    node: { labels: { zone: 'x' } },
    cluster: { claims: [BOUND], volumes: [volume('pv-1', { nodeAffinity: inZone('x') })] },
  },
  'out of reach': {
    pod: uses('data'),
    node: { labels: { zone: 'y' } },
    cluster: { claims: [BOUND], volumes: [volume('pv-1', { nodeAffinity: inZone('x') })] },
    want: 'node(s) had volume node affinity conflict',
  },
  'waits for its consumer': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', { storageClassName: 'late' })], classes: [WAITING] },
  },
  'waits, but asked for a volume by name': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', { storageClassName: 'late', volumeName: 'pv-1' })], classes: [WAITING] },
    want: 'pod has unbound immediate PersistentVolumeClaims',
  },
  'waits on this node': {
    pod: uses('data'),
    cluster: {
      claims: [
        aClaim(
          'data',
          { storageClassName: 'late' },
          { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'a' } } },
        ),
      ],
      classes: [WAITING],
    },
  },
  'waits on another node': {
    pod: uses('data'),
    cluster: {
      claims: [
        aClaim(
          'data',
          { storageClassName: 'late' },
          { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'b' } } },
        ),
      ],
      classes: [WAITING],
    },
    want: "node(s) didn't find available persistent volumes to bind",
  },
  'its class is for other zones': {
    pod: uses('data'),
    node: { labels: { zone: 'y' } },
    cluster: {
      claims: [aClaim('data', { storageClassName: 'late' })],
      classes: [{ ...WAITING, allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['x'] }] }] }],
    },
    want: "node(s) didn't find available persistent volumes to bind",
  },
  'an ephemeral one that is still to be made': {
    pod: { volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }] },
    want: 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"',
  },
});
