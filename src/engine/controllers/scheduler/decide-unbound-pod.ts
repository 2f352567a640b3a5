/** Decides the next step for one pod that has no node. Pure. */
import type { RefusalCause, ClusterView } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { pendingClaims } from '#engine/controllers/scheduler/filters/volumes.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { type SchedulerClaim, SCHEDULER_CLAIMS } from '#engine/controllers/scheduler/kinds.ts';
import { labelOf } from '#engine/controllers/placement/node-selector.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type ScheduleOutcome, schedulePod } from '#engine/controllers/scheduler/schedule-pod.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export interface UnboundPodWorld {
  readonly facts: PodFacts;
  readonly cluster: ClusterView;
  /** The node that the last decision assigned, if the pod is not bound yet. */
  readonly previousNode: string | undefined;
  /** True if the last Event about the unschedulable pod is old enough to be repeated. */
  readonly reportAgain: boolean;
  readonly now: string;
}

interface PodDecision {
  readonly plan: Plan;
  /** The assigned node. The pod counts there from now on. */
  readonly node?: string;
  /** The pod waits for a change that resolves one of these causes. */
  readonly waitsFor?: ReadonlySet<RefusalCause>;
}

const SCHEDULER_NAME = 'default-scheduler';
/** Unschedulable pods are retried after this time at the latest. Kubernetes' podMaxInUnschedulablePodsDuration. */
export const RETRY_INTERVAL_MS = 5 * 60_000;
const WAITS_FOR_VOLUMES: ReadonlySet<RefusalCause> = new Set<RefusalCause>(['volumes']);

/** Reports whether this scheduler has to assign a node to the pod. */
export function needsScheduling({ metadata, spec, status }: EnginePod): boolean {
  if (spec.nodeName || metadata.deletionTimestamp !== undefined) return false;
  if ((spec.schedulerName ?? SCHEDULER_NAME) !== SCHEDULER_NAME) return false;
  return (spec.schedulingGates ?? []).length === 0 && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

/** `schedule` may be a cached version of schedulePod. */
export function decideUnboundPod(world: UnboundPodWorld, schedule: typeof schedulePod = schedulePod): PodDecision {
  const { facts, cluster, previousNode } = world;
  const outcome = schedule(facts, cluster, previousNode);
  if (outcome.node === undefined) return reportUnschedulable(world, outcome);
  const { node } = outcome;
  const pending = pendingClaims(facts.pod, cluster);
  if (pending.length === 0) return { plan: { changes: [bindPod(facts.pod, node)] }, node };
  const unannotated = pending.filter(({ metadata }) => labelOf(metadata.annotations, SELECTED_NODE) === undefined);
  const changes = unannotated.map((claim) => selectNode(claim, node));
  return { plan: { changes, requeueAfterMs: RETRY_INTERVAL_MS }, node, waitsFor: WAITS_FOR_VOLUMES };
}

function bindPod({ metadata }: Stored<EnginePod>, node: string): Change {
  const { namespace, name, uid } = metadata;
  const object = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { namespace, name, uid },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  };
  const why = `Successfully assigned ${namespace}/${name} to ${node}`;
  return { do: 'create', type: ENGINE_PODS, object, subresource: 'binding', reason: 'Scheduled', why };
}

/** Annotates a claim with the node, so that the provisioner creates the volume there. */
function selectNode({ metadata }: SchedulerClaim, node: string): Change {
  const { namespace, name = '', uid } = metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [SELECTED_NODE]: node } } } };
  return {
    do: 'patch',
    type: SCHEDULER_CLAIMS,
    name: { namespace, name },
    uid,
    patch,
    why: `the pod that uses the claim will run on ${node}`,
  };
}

type Unschedulable = Extract<ScheduleOutcome, { message: string }>;

function reportUnschedulable(
  { facts, reportAgain, now }: UnboundPodWorld,
  { message, causes }: Unschedulable,
): PodDecision {
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
  const why = 'the pod fits on no node';
  const changes: Change[] = same
    ? []
    : [{ do: 'patch', type: ENGINE_PODS, name: { namespace, name }, uid, subresource: 'status', patch, why }];
  const events = same && !reportAgain ? [] : [{ type: 'Warning' as const, reason: 'FailedScheduling', message }];
  return { plan: { changes, events, requeueAfterMs: RETRY_INTERVAL_MS }, waitsFor: causes };
}
