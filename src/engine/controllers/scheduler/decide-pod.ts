/** What is done about one pod that has no node yet. Pure. */
import type { Cause, ClusterView } from '#engine/controllers/scheduler/filters/filter.ts';
import { pendingClaims } from '#engine/controllers/scheduler/filters/volumes.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { type Pod, PODS } from '#engine/controllers/kinds.ts';
import { type Claim, CLAIMS, labelOf } from '#engine/controllers/scheduler/kinds.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type Outcome, schedulePod } from '#engine/controllers/scheduler/schedule-pod.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export interface PodWorld {
  readonly facts: PodFacts;
  readonly cluster: ClusterView;
  /** The node that it was meant for when it was last looked at. */
  readonly before: string | undefined;
  /** Whether it was said long ago, or never, why the pod has no node. */
  readonly tellAgain: boolean;
  readonly now: string;
}

export interface Decision {
  readonly plan: Plan;
  /** Counts there from now on. */
  readonly node?: string;
  /** It waits until something of that changes. */
  readonly waitsFor?: ReadonlySet<Cause>;
}

export const SCHEDULER_NAME = 'default-scheduler';
/** Whatever happened meanwhile: pods that fit nowhere are looked at again. Kubernetes' podMaxInUnschedulablePodsDuration. */
export const LOOK_AGAIN_MS = 5 * 60_000;
const ON_VOLUMES: ReadonlySet<Cause> = new Set<Cause>(['volumes']);

/** Whether a pod is for us to place. */
export function isWaiting({ metadata, spec, status }: Pod): boolean {
  if (spec.nodeName || metadata.deletionTimestamp !== undefined) return false;
  if ((spec.schedulerName ?? SCHEDULER_NAME) !== SCHEDULER_NAME) return false;
  return (spec.schedulingGates ?? []).length === 0 && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

/** `schedule` may answer from what it remembers of pods alike. */
export function decidePod(world: PodWorld, schedule: typeof schedulePod = schedulePod): Decision {
  const { facts, cluster, before } = world;
  const outcome = schedule(facts, cluster, before);
  if (outcome.node === undefined) return refused(world, outcome);
  const { node } = outcome;
  const pending = pendingClaims(facts.pod, cluster);
  if (pending.length === 0) return { plan: { changes: [binding(facts.pod, node)] }, node };
  const untold = pending.filter(({ metadata }) => labelOf(metadata.annotations, SELECTED_NODE) === undefined);
  const changes = untold.map((claim) => selection(claim, node));
  return { plan: { changes, requeueAfterMs: LOOK_AGAIN_MS }, node, waitsFor: ON_VOLUMES };
}

function binding({ metadata }: Stored<Pod>, node: string): Change {
  const { namespace, name, uid } = metadata;
  const object = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { namespace, name, uid },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  };
  const why = `Successfully assigned ${namespace}/${name} to ${node}`;
  return { do: 'create', type: PODS, object, subresource: 'binding', reason: 'Scheduled', why };
}

/** Whoever makes the volume makes it where the pod will be. */
function selection({ metadata }: Claim, node: string): Change {
  const { namespace, name = '', uid } = metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [SELECTED_NODE]: node } } } };
  return {
    do: 'patch',
    type: CLAIMS,
    name: { namespace, name },
    uid,
    patch,
    why: `its first consumer runs on ${node}`,
  };
}

type Refused = Extract<Outcome, { message: string }>;

function refused({ facts, tellAgain, now }: PodWorld, { message, causes }: Refused): Decision {
  const { metadata, status } = facts.pod;
  const old = findCondition(status?.conditions, 'PodScheduled');
  const same = old?.status === 'False' && old.reason === 'Unschedulable' && old.message === message;
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastProbeTime: null,
    lastTransitionTime: old?.status === 'False' ? (old.lastTransitionTime ?? now) : now,
  };
  const { namespace, name, uid } = metadata;
  const patch = { type: 'strategic' as const, body: { status: { conditions: [condition] } } };
  const why = 'it fits on no node';
  const changes: Change[] = same
    ? []
    : [{ do: 'patch', type: PODS, name: { namespace, name }, uid, subresource: 'status', patch, why }];
  const events = same && !tellAgain ? [] : [{ type: 'Warning' as const, reason: 'FailedScheduling', message }];
  return { plan: { changes, events, requeueAfterMs: LOOK_AGAIN_MS }, waitsFor: causes };
}
