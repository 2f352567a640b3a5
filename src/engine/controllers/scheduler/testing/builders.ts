/** Builders of nodes, pods, claims and clusters for tests. */
import { ClusterState } from '#engine/controllers/scheduler/cluster-state.ts';
import type { ClusterView } from '#engine/controllers/scheduler/filters/node-filter.ts';
import type { EngineNode, EnginePod } from '#engine/controllers/kinds.ts';
import type { SchedulerClaim, SchedulerStorageClass, SchedulerVolume } from '#engine/controllers/scheduler/kinds.ts';
import type { OptionalLabels } from '#engine/controllers/placement/node-selector.ts';
import type { Taint } from '#engine/controllers/placement/taints.ts';
import { objectKey } from '#client/object-key.ts';
import type { KubeObject, ObjectMeta, Stored } from '#kube/meta.ts';

const CREATED = '2026-01-01T00:00:00Z';

export function stored<T extends Omit<KubeObject, 'metadata'>>(object: T, metadata: ObjectMeta & { name: string }) {
  const { name, namespace = '' } = metadata;
  const identity = { uid: `uid-${namespace}-${name}`, resourceVersion: '1', creationTimestamp: CREATED };
  return { ...object, metadata: { ...identity, ...metadata } };
}

export interface NodeOptions {
  readonly labels?: Record<string, string>;
  readonly taints?: Taint[];
  readonly unschedulable?: boolean;
  readonly allocatable?: Record<string, string>;
  readonly status?: EngineNode['status'];
}

export function aNode(name: string, options: NodeOptions = {}): Stored<EngineNode> {
  const { labels = {}, taints, unschedulable, allocatable = {}, status } = options;
  return stored(
    {
      apiVersion: 'v1',
      kind: 'Node',
      spec: { taints, unschedulable },
      status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...allocatable }, ...status },
    },
    { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
  );
}

export interface PodOptions extends Partial<EnginePod['spec']> {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  /** The requests of the only container. */
  readonly requests?: Record<string, string>;
  readonly hostPort?: number;
  readonly owner?: string;
  readonly metadata?: ObjectMeta;
  readonly status?: EnginePod['status'];
}

export function aPod(name: string, options: PodOptions = {}): Stored<EnginePod> {
  const { namespace = 'default', labels, requests, hostPort, owner, metadata, status, ...spec } = options;
  const ports = hostPort === undefined ? undefined : [{ containerPort: hostPort, hostPort }];
  const containers = [{ name: 'main', image: 'x', resources: { requests }, ports }];
  const reference = { apiVersion: 'x/v1', kind: 'Owner', name: owner ?? '', uid: `uid-${owner}`, controller: true };
  const ownerReferences = owner === undefined ? undefined : [reference];
  const pod = { apiVersion: 'v1', kind: 'Pod', spec: { containers, ...spec } as EnginePod['spec'], status };
  return stored(pod, { name, namespace, labels, ownerReferences, ...metadata });
}

export interface ClusterOptions {
  readonly nodes?: readonly Stored<EngineNode>[];
  readonly pods?: readonly Stored<EnginePod>[];
  readonly claims?: readonly SchedulerClaim[];
  readonly volumes?: readonly SchedulerVolume[];
  readonly classes?: readonly SchedulerStorageClass[];
  readonly namespaces?: Readonly<Record<string, OptionalLabels>>;
}

export function aCluster(options: ClusterOptions = {}): ClusterView {
  const { nodes = [], pods = [], claims = [], volumes = [], classes = [], namespaces = {} } = options;
  const state = new ClusterState();
  for (const node of nodes) state.setNode(node.metadata.name, node);
  for (const pod of pods) state.setPod(objectKey(pod), pod);
  return {
    nodes: state.nodes,
    namespaceLabels: (namespace) => namespaces[namespace],
    claim: (key) => claims.find((claim) => objectKey(claim) === key),
    volume: (name) => volumes.find(({ metadata }) => metadata.name === name),
    storageClass: (name) => classes.find(({ metadata }) => metadata.name === name),
  };
}

export function aClaim(
  name: string,
  spec: SchedulerClaim['spec'],
  rest: { phase?: string; metadata?: ObjectMeta } = {},
): SchedulerClaim {
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec, status: { phase: rest.phase ?? 'Pending' } };
  return stored(claim, { name, namespace: 'default', ...rest.metadata });
}
