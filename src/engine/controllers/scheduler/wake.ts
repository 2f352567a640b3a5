/** Which changes may help a pod that fits nowhere: only then it is looked at again. Pure. */
import type { Cause } from '#engine/controllers/scheduler/filters/filter.ts';
import { missingOn } from '#engine/controllers/scheduler/filters/resources.ts';
import { claimsOf } from '#engine/controllers/scheduler/filters/volumes.ts';
import type { Node, Pod } from '#engine/controllers/kinds.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { deepEqual } from '#kube/deep.ts';

export interface WaitingPod {
  readonly facts: PodFacts;
  readonly causes: ReadonlySet<Cause>;
}

/** What happened, as far as pods may wait for it. */
export type Happening =
  /** Pods that any of these kept away may fit now. */
  | { readonly eases: ReadonlySet<Cause> }
  /** A pod left this node. */
  | { readonly roomOn: Pick<NodeView, 'allocatable' | 'requested' | 'pods'> }
  | { readonly claim: { readonly namespace: string; readonly name: string } };

export function mayHelp(happening: Happening, { facts, causes }: WaitingPod): boolean {
  if ('eases' in happening) return intersects(causes, happening.eases);
  if ('claim' in happening) {
    const { namespace, name } = happening.claim;
    return facts.namespace === namespace && claimsOf(facts.pod).some((claim) => claim.name === name);
  }
  if (intersects(causes, LEAVING)) return true;
  return causes.has('resources') && missingOn(facts, happening.roomOn).length === 0;
}

/** Besides room, of which the amount is known. */
const LEAVING: ReadonlySet<Cause> = new Set<Cause>(['ports', 'spread', 'pod-affinity']);
const ANY: ReadonlySet<Cause> = new Set<Cause>([
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

const COMING: Happening = { eases: new Set<Cause>(['spread', 'pod-affinity']) };
export const STORAGE_CHANGED: Happening = { eases: new Set<Cause>(['volumes']) };
export const NAMESPACE_CHANGED: Happening = { eases: new Set<Cause>(['pod-affinity']) };

/** undefined: it helps nobody. Nodes report every few seconds; most of that changes nothing here. */
export function ofNode(old: Node | undefined, next: Node | undefined): Happening | undefined {
  if (next === undefined) return { eases: new Set<Cause>(['spread', 'nodes']) };
  if (old === undefined) return { eases: ANY };
  const eases = new Set<Cause>();
  const { spec: before = {}, status: oldStatus = {} } = old;
  const { spec: after = {}, status = {} } = next;
  if (!deepEqual(before.taints, after.taints)) eases.add('taints').add('spread');
  if ((before.unschedulable ?? false) !== (after.unschedulable ?? false)) eases.add('unschedulable');
  if (!deepEqual(oldStatus.allocatable, status.allocatable)) eases.add('resources');
  if (!deepEqual(old.metadata.labels, next.metadata.labels)) {
    for (const cause of ['node-affinity', 'volumes', 'spread', 'pod-affinity'] as const) eases.add(cause);
  }
  return eases.size === 0 ? undefined : { eases };
}

/** Of a pod that is on a node now; undefined: it helps nobody. Those that leave make room (`roomOn`). */
export function ofPlacedPod(old: Pod | undefined, next: Pod): Happening | undefined {
  const same =
    old !== undefined &&
    old.spec.nodeName === next.spec.nodeName &&
    deepEqual(old.metadata.labels, next.metadata.labels) &&
    old.metadata.deletionTimestamp === next.metadata.deletionTimestamp;
  return same ? undefined : COMING;
}

function intersects(a: ReadonlySet<Cause>, b: ReadonlySet<Cause>): boolean {
  for (const cause of a) if (b.has(cause)) return true;
  return false;
}
