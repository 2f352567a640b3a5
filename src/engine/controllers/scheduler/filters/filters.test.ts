/** Tests of the filters: the nodes that each one refuses, and its messages. */
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
  /** The reason why the pod does not fit on `a`; undefined = it fits. */
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
  'accepts a schedulable node': {},
  'refuses a cordoned node': { node: { unschedulable: true }, want: UNSCHEDULABLE },
  'accepts a cordoned node if the taint is tolerated': {
    node: { unschedulable: true },
    pod: { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] },
  },
  'accepts a cordoned node if everything is tolerated': {
    node: { unschedulable: true },
    pod: { tolerations: [{ operator: 'Exists' }] },
  },
  'refuses a cordoned node if only another effect is tolerated': {
    node: { unschedulable: true },
    pod: { tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] },
    want: UNSCHEDULABLE,
  },
});

const GPU = { key: 'gpu', value: 'yes', effect: 'NoSchedule' } as const;

run('taints', taintFilter, {
  'accepts a node without taints': {},
  'refuses NoSchedule': { node: { taints: [GPU] }, want: 'node(s) had untolerated taint {gpu: yes}' },
  'refuses NoExecute without a value': {
    node: { taints: [{ key: 'down', effect: 'NoExecute' }] },
    want: 'node(s) had untolerated taint {down: }',
  },
  'accepts PreferNoSchedule': { node: { taints: [{ ...GPU, effect: 'PreferNoSchedule' }] } },
  'accepts a taint that is tolerated by value': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', value: 'yes' }] },
  },
  'refuses a taint that is tolerated with another value only': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Equal', value: 'no' }] },
    want: 'node(s) had untolerated taint {gpu: yes}',
  },
  'accepts a taint that is tolerated with any value': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
  },
  'refuses a taint that is tolerated with another effect only': {
    node: { taints: [GPU] },
    pod: { tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }] },
    want: 'node(s) had untolerated taint {gpu: yes}',
  },
  'reports only the first taint that is not tolerated': {
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
  'accepts any node for a pod without constraints': {},
  'accepts a node with the label': { pod: { nodeSelector: { disk: 'ssd' } }, node: { labels: { disk: 'ssd' } } },
  'refuses a node with another value of the label': {
    pod: { nodeSelector: { disk: 'ssd' } },
    node: { labels: { disk: 'hdd' } },
    want: AFFINITY,
  },
  'refuses a node that lacks one of the labels': {
    pod: { nodeSelector: { disk: 'ssd', zone: 'x' } },
    node: { labels: { disk: 'ssd' } },
    want: AFFINITY,
  },
  'does not treat inherited properties as labels': { pod: { nodeSelector: { constructor: 'x' } }, want: AFFINITY },
  'In accepts a listed value': {
    pod: required(expression('disk', 'In', 'ssd', 'nvme')),
    node: { labels: { disk: 'nvme' } },
  },
  'In refuses a node without the label': { pod: required(expression('disk', 'In', 'ssd')), want: AFFINITY },
  'NotIn accepts a node without the label': { pod: required(expression('disk', 'NotIn', 'hdd')) },
  'NotIn refuses a listed value': {
    pod: required(expression('disk', 'NotIn', 'hdd')),
    node: { labels: { disk: 'hdd' } },
    want: AFFINITY,
  },
  'Exists accepts an empty value': { pod: required(expression('disk', 'Exists')), node: { labels: { disk: '' } } },
  'DoesNotExist refuses an empty value': {
    pod: required(expression('disk', 'DoesNotExist')),
    node: { labels: { disk: '' } },
    want: AFFINITY,
  },
  'Gt accepts a larger number': { pod: required(expression('gen', 'Gt', '6')), node: { labels: { gen: '7' } } },
  'Gt refuses an equal number': {
    pod: required(expression('gen', 'Gt', '7')),
    node: { labels: { gen: '7' } },
    want: AFFINITY,
  },
  'Gt refuses a value that is not a number': {
    pod: required(expression('gen', 'Gt', '6')),
    node: { labels: { gen: 'new' } },
    want: AFFINITY,
  },
  'Lt accepts a smaller number': { pod: required(expression('gen', 'Lt', '8')), node: { labels: { gen: '7' } } },
  'accepts a node if one term matches': {
    pod: required(expression('disk', 'In', 'ssd'), expression('gen', 'Exists')),
    node: { labels: { gen: '1' } },
  },
  'refuses a node if one expression of a term does not match': {
    pod: required({
      matchExpressions: [
        ...expression('disk', 'Exists').matchExpressions,
        ...expression('gen', 'Exists').matchExpressions,
      ],
    }),
    node: { labels: { gen: '1' } },
    want: AFFINITY,
  },
  'refuses every node for an empty term': { pod: required({}), want: AFFINITY },
  'accepts a node by name': {
    pod: required({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }),
  },
  'refuses a node by name': {
    pod: required({ matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['a'] }] }),
    want: AFFINITY,
  },
  'refuses a node if only nodeSelector or affinity matches': {
    pod: { ...required(expression('gen', 'Exists')), nodeSelector: { disk: 'ssd' } },
    node: { labels: { gen: '1' } },
    want: AFFINITY,
  },
});

const named = (...values: string[]) => ({ key: 'metadata.name', operator: 'In', values });

run('named nodes', namedNodeFilter, {
  'does not apply if no node is named': { pod: required(expression('disk', 'Exists')) },
  'accepts a named node': { pod: required({ matchFields: [named('a', 'b')] }) },
  'refuses a node that is not named': {
    pod: required({ matchFields: [named('b')] }),
    want: "node(s) didn't satisfy plugin(s) [NodeAffinity]",
  },
  'does not apply if a term names no node': {
    pod: required({ matchFields: [named('b')] }, expression('disk', 'Exists')),
  },
  'fits nowhere if the names exclude each other': {
    pod: required({ matchFields: [named('b'), named('c')] }),
    want: 'pod affinity terms conflict',
  },
});

const on = (name: string, options: PodOptions = {}) => aPod(name, { nodeName: 'a', ...options });
const KVM = 'devices.kubevirt.io/kvm';

run('resources', resourceFilter, {
  'accepts a pod without requests': {},
  'accepts a request for everything that the node has': { pod: { requests: { cpu: '4', memory: '8Gi' } } },
  'refuses a request for more than the node has': { pod: { requests: { cpu: '4001m' } }, want: 'Insufficient cpu' },
  'considers the requests of other pods': {
    pod: { requests: { cpu: '2' } },
    cluster: { pods: [on('x', { requests: { cpu: '2500m' } })] },
    want: 'Insufficient cpu',
  },
  'ignores pods that have ended': {
    pod: { requests: { cpu: '4' } },
    cluster: { pods: [on('x', { requests: { cpu: '2' }, status: { phase: 'Succeeded' } })] },
  },
  'reports every resource that is insufficient': {
    pod: { requests: { cpu: '5', memory: '9Gi' } },
    want: ['Insufficient cpu', 'Insufficient memory'],
  },
  'refuses a request for more ephemeral storage than the node has': {
    pod: { requests: { 'ephemeral-storage': '1Gi' } },
    node: { allocatable: { 'ephemeral-storage': '100Mi' } },
    want: 'Insufficient ephemeral-storage',
  },
  'accepts a device that the node has': { pod: { requests: { [KVM]: '1' } }, node: { allocatable: { [KVM]: '1k' } } },
  'refuses a device that the node does not have': { pod: { requests: { [KVM]: '1' } }, want: `Insufficient ${KVM}` },
  'accepts a request for 0 devices': { pod: { requests: { [KVM]: '0' } } },
  'refuses a node with the maximum number of pods': {
    node: { allocatable: { pods: '1' } },
    cluster: { pods: [on('x')] },
    want: 'Too many pods',
  },
  'refuses a node without allocatable pods': { node: { status: { allocatable: {} } }, want: 'Too many pods' },
});

run('ports', portFilter, {
  'accepts a pod without host ports': { cluster: { pods: [on('x', { hostPort: 80 })] } },
  'accepts a free host port': { pod: { hostPort: 81 }, cluster: { pods: [on('x', { hostPort: 80 })] } },
  'refuses a host port in use': {
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
  'accepts a pod without claims': { pod: { volumes: [{ name: 'tmp', emptyDir: {} }] } },
  'fits nowhere if a claim does not exist': { pod: uses('data'), want: 'persistentvolumeclaim "data" not found' },
  'fits nowhere if a claim is under deletion': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', {}, { metadata: { deletionTimestamp: 'now' } })] },
    want: 'persistentvolumeclaim "data" is being deleted',
  },
  'fits nowhere if a claim has lost its volume': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', { volumeName: 'pv-1' }, { phase: 'Lost' })] },
    want: 'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1"',
  },
  'fits nowhere if an immediate claim is not bound': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', {})] },
    want: 'pod has unbound immediate PersistentVolumeClaims',
  },
  'fits nowhere if one of two claims is not bound': {
    pod: uses('data', 'log'),
    cluster: { claims: [BOUND, aClaim('log', {})], volumes: [volume('pv-1', {})] },
    want: 'pod has unbound immediate PersistentVolumeClaims',
  },
  'accepts any node for a volume without node affinity': {
    pod: uses('data'),
    cluster: { claims: [BOUND], volumes: [volume('pv-1', {})] },
  },
  'refuses if the volume does not exist': {
    pod: uses('data'),
    cluster: { claims: [BOUND] },
    want: 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
  },
  'accepts a node that matches the volume': {
    pod: uses('data'),
    node: { labels: { zone: 'x' } },
    cluster: { claims: [BOUND], volumes: [volume('pv-1', { nodeAffinity: inZone('x') })] },
  },
  'refuses a node that does not match the volume': {
    pod: uses('data'),
    node: { labels: { zone: 'y' } },
    cluster: { claims: [BOUND], volumes: [volume('pv-1', { nodeAffinity: inZone('x') })] },
    want: 'node(s) had volume node affinity conflict',
  },
  'accepts any node for a claim that waits for its first consumer': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', { storageClassName: 'late' })], classes: [WAITING] },
  },
  'fits nowhere if a waiting claim names a volume': {
    pod: uses('data'),
    cluster: { claims: [aClaim('data', { storageClassName: 'late', volumeName: 'pv-1' })], classes: [WAITING] },
    want: 'pod has unbound immediate PersistentVolumeClaims',
  },
  'accepts the selected node of a waiting claim': {
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
  'refuses a node other than the selected one': {
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
  'refuses a node outside the allowed topologies': {
    pod: uses('data'),
    node: { labels: { zone: 'y' } },
    cluster: {
      claims: [aClaim('data', { storageClassName: 'late' })],
      classes: [{ ...WAITING, allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['x'] }] }] }],
    },
    want: "node(s) didn't find available persistent volumes to bind",
  },
  'fits nowhere until an ephemeral claim is created': {
    pod: { volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }] },
    want: 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"',
  },
});
