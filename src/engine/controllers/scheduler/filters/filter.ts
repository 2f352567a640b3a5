/**
 * What a filter is: it looks at the pod and the cluster once, and then at each node. Only the first filter that refuses a
 * node is told of, so that their order is part of what people read.
 */
import type { Labels, Volume, Claim, StorageClass } from '#engine/controllers/scheduler/kinds.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';

/** Which aspect refused: what may help is decided by it (wake.ts). */
export type Cause =
  | 'nodes'
  | 'named'
  | 'unschedulable'
  | 'taints'
  | 'node-affinity'
  | 'ports'
  | 'resources'
  | 'volumes'
  | 'spread'
  | 'pod-affinity';

/** Why a pod does not fit on a node. */
export interface Refusal {
  /** In Kubernetes' words. */
  readonly reasons: readonly string[];
  /** Whether it could fit if other pods went: preemption asks. */
  readonly resolvable: boolean;
}

export type NodeCheck = (node: NodeView) => Refusal | undefined;

/** The pod fits nowhere, whatever the nodes are like. */
export interface Nowhere {
  readonly nowhere: string;
}

/** undefined: nothing to check for this pod. */
export type Filter = (facts: PodFacts, cluster: ClusterView) => NodeCheck | Nowhere | undefined;

/** All that a decision may look at besides the pod. Pure data while it is made. */
export interface ClusterView {
  /** In the order of their names. */
  readonly nodes: readonly NodeView[];
  namespaceLabels(namespace: string): Labels;
  /** By `namespace/name`. */
  claim(key: string): Claim | undefined;
  volume(name: string): Volume | undefined;
  storageClass(name: string): StorageClass | undefined;
}

/** No pod has to go for it to stay so. */
export function unresolvable(...reasons: string[]): Refusal {
  return { reasons, resolvable: false };
}

export function resolvable(...reasons: string[]): Refusal {
  return { reasons, resolvable: true };
}
