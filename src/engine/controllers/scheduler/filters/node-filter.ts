/**
 * The types of filters. A filter examines the pod and the cluster once, and then each node. Only the first filter that
 * refuses a node is reported, so the order of filters affects the messages that users see.
 */
import type { SchedulerVolume, SchedulerClaim, SchedulerStorageClass } from '#engine/controllers/scheduler/kinds.ts';
import type { OptionalLabels } from '#engine/controllers/placement/node-selector.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';

/** The aspect that caused a refusal. It determines which changes may help the pod (wake.ts). */
export type RefusalCause =
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
export interface NodeRefusal {
  /** Reasons with Kubernetes' wording. */
  readonly reasons: readonly string[];
  /** True if removing other pods from the node could make the pod fit. Used for the preemption message. */
  readonly isResolvable: boolean;
}

export type NodeCheck = (node: NodeView) => NodeRefusal | undefined;

/** The pod fits on no node, regardless of the nodes. */
export interface NoNodeFits {
  readonly noNodeReason: string;
}

/** Returns undefined if there is nothing to check for the pod. */
export type NodeFilter = (facts: PodFacts, cluster: ClusterView) => NodeCheck | NoNodeFits | undefined;

/** Everything that a decision may read besides the pod. It does not change during a decision. */
export interface ClusterView {
  /** The nodes in the order of their names. */
  readonly nodes: readonly NodeView[];
  namespaceLabels(namespace: string): OptionalLabels;
  /** By `namespace/name`. */
  claim(key: string): SchedulerClaim | undefined;
  volume(name: string): SchedulerVolume | undefined;
  storageClass(name: string): SchedulerStorageClass | undefined;
}

/** A refusal that removing other pods does not resolve. */
export function unresolvableRefusal(...reasons: string[]): NodeRefusal {
  return { reasons, isResolvable: false };
}

/** A refusal that removing other pods may resolve. */
export function resolvableRefusal(...reasons: string[]): NodeRefusal {
  return { reasons, isResolvable: true };
}
