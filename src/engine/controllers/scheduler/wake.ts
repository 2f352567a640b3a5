/** Decides which changes of the cluster may help an unschedulable pod. Only these cause another attempt. Pure. */
import type { RefusalCause } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { findInsufficient } from '#engine/controllers/scheduler/filters/resources.ts';
import { claimsOf } from '#engine/controllers/placement/pod-claims.ts';
import type { EngineNode, EnginePod } from '#engine/controllers/kinds.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { deepEqual } from '#kube/deep.ts';

export interface WaitingPod {
  readonly facts: PodFacts;
  readonly causes: ReadonlySet<RefusalCause>;
}

/** A change of the cluster that pods may wait for. */
export type ClusterEvent =
  /** Pods that were refused for one of these causes may fit now. */
  | { readonly unblocks: ReadonlySet<RefusalCause> }
  /** A pod left this node. */
  | { readonly freedNode: Pick<NodeView, 'allocatable' | 'requested' | 'pods'> }
  | { readonly claim: { readonly namespace: string; readonly name: string } };

export function mayHelp(event: ClusterEvent, { facts, causes }: WaitingPod): boolean {
  if ('unblocks' in event) return intersects(causes, event.unblocks);
  if ('claim' in event) {
    const { namespace, name } = event.claim;
    return facts.namespace === namespace && claimsOf(facts.pod).some((claim) => claim.name === name);
  }
  if (intersects(causes, UNBLOCKED_BY_LEAVING_POD)) return true;
  return causes.has('resources') && findInsufficient(facts, event.freedNode).length === 0;
}

/** Causes that a pod that leaves may resolve. Resources are checked separately, because their amounts are known. */
const UNBLOCKED_BY_LEAVING_POD: ReadonlySet<RefusalCause> = new Set<RefusalCause>(['ports', 'spread', 'pod-affinity']);
const ALL_CAUSES: ReadonlySet<RefusalCause> = new Set<RefusalCause>([
  'nodes',
  'named',
  'unschedulable',
  'taints',
  'node-affinity',
  'ports',
  'resources',
  'volumes',
  'spread',
  'pod-affinity',
]);

const POD_PLACED: ClusterEvent = { unblocks: new Set<RefusalCause>(['spread', 'pod-affinity']) };
export const STORAGE_CHANGED: ClusterEvent = { unblocks: new Set<RefusalCause>(['volumes']) };
export const NAMESPACE_CHANGED: ClusterEvent = { unblocks: new Set<RefusalCause>(['pod-affinity']) };

/** Returns the event for a change of a node, or undefined if it helps no pod. Heartbeats are the usual case. */
export function nodeEvent(old: EngineNode | undefined, next: EngineNode | undefined): ClusterEvent | undefined {
  if (next === undefined) return { unblocks: new Set<RefusalCause>(['spread', 'nodes']) };
  if (old === undefined) return { unblocks: ALL_CAUSES };
  const unblocks = new Set<RefusalCause>();
  const { spec: before = {}, status: oldStatus = {} } = old;
  const { spec: after = {}, status = {} } = next;
  if (!deepEqual(before.taints, after.taints)) unblocks.add('taints').add('spread');
  if ((before.unschedulable ?? false) !== (after.unschedulable ?? false)) unblocks.add('unschedulable');
  if (!deepEqual(oldStatus.allocatable, status.allocatable)) unblocks.add('resources');
  if (!deepEqual(old.metadata.labels, next.metadata.labels)) {
    for (const cause of ['node-affinity', 'volumes', 'spread', 'pod-affinity'] as const) unblocks.add(cause);
  }
  return unblocks.size === 0 ? undefined : { unblocks };
}

/**
 * Returns the event for a pod that is on a node, or undefined if the change helps no pod. Pods that leave a node cause
 * a `freedNode` event instead.
 */
export function placedPodEvent(old: EnginePod | undefined, next: EnginePod): ClusterEvent | undefined {
  const same =
    old !== undefined &&
    old.spec.nodeName === next.spec.nodeName &&
    deepEqual(old.metadata.labels, next.metadata.labels) &&
    old.metadata.deletionTimestamp === next.metadata.deletionTimestamp;
  return same ? undefined : POD_PLACED;
}

function intersects(a: ReadonlySet<RefusalCause>, b: ReadonlySet<RefusalCause>): boolean {
  for (const cause of a) if (b.has(cause)) return true;
  return false;
}
