/** Nodes, pods and clusters of them for tests. */
import { ClusterState } from '#engine/controllers/scheduler/cluster-state.ts';
import type { ClusterView } from '#engine/controllers/scheduler/filters/filter.ts';
import type { Node, Pod } from '#engine/controllers/kinds.ts';
import type { Claim, Labels, StorageClass, Taint, Volume } from '#engine/controllers/scheduler/kinds.ts';
import { objectKey } from '#client/object-key.ts';
import type { KubeObject, ObjectMeta, Stored } from '#kube/meta.ts';

const CREATED = '2026-01-01T00:00:00Z';

export function stored<T extends Omit<KubeObject, 'metadata'>>(object: T, metadata: ObjectMeta & { name: string }) {
  const { name, namespace = '' } = metadata;
  const identity = { uid: `uid-${namespace}-${name}`, resourceVersion: '1', creationTimestamp: CREATED };
  return { ...object, metadata: { ...identity, ...metadata } };
}

export interface NodeWish {
  readonly labels?: Record<string, string>;
  readonly taints?: Taint[];
  readonly unschedulable?: boolean;
  readonly allocatable?: Record<string, string>;
  readonly status?: Node['status'];
}

export function aNode(name: string, wish: NodeWish = {}): Stored<Node> {
  const { labels = {}, taints, unschedulable, allocatable = {}, status } = wish;
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

export interface PodWish extends Partial<Pod['spec']> {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  /** Of its only container. */
  readonly requests?: Record<string, string>;
  readonly hostPort?: number;
  readonly owner?: string;
  readonly metadata?: ObjectMeta;
  readonly status?: Pod['status'];
}

export function aPod(name: string, wish: PodWish = {}): Stored<Pod> {
  const { namespace = 'default', labels, requests, hostPort, owner, metadata, status, ...spec } = wish;
  const ports = hostPort === undefined ? undefined : [{ containerPort: hostPort, hostPort }];
  const containers = [{ name: 'main', image: 'x', resources: { requests }, ports }];
  const reference = { apiVersion: 'x/v1', kind: 'Owner', name: owner ?? '', uid: `uid-${owner}`, controller: true };
  const ownerReferences = owner === undefined ? undefined : [reference];
  const pod = { apiVersion: 'v1', kind: 'Pod', spec: { containers, ...spec } as Pod['spec'], status };
  return stored(pod, { name, namespace, labels, ownerReferences, ...metadata });
}

export interface ClusterWish {
  readonly nodes?: readonly Stored<Node>[];
  readonly pods?: readonly Stored<Pod>[];
  readonly claims?: readonly Claim[];
  readonly volumes?: readonly Volume[];
  readonly classes?: readonly StorageClass[];
  readonly namespaces?: Readonly<Record<string, Labels>>;
}

export function aCluster(wish: ClusterWish = {}): ClusterView {
  const { nodes = [], pods = [], claims = [], volumes = [], classes = [], namespaces = {} } = wish;
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

export function aClaim(name: string, spec: Claim['spec'], rest: { phase?: string; metadata?: ObjectMeta } = {}): Claim {
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec, status: { phase: rest.phase ?? 'Pending' } };
  return stored(claim, { name, namespace: 'default', ...rest.metadata });
}
