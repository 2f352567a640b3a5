/**
 * Builds the status of a pod from the state of its containers. Fields and conditions of other components (PodScheduled,
 * DisruptionTarget, the QoS class) are kept. Pure.
 */
import { MIGRATION_COMMITTED_CONDITION } from '#api/names.ts';
import { findCondition, setCondition, type Condition } from '#kube/conditions.ts';
import type { ContainerState, ContainerStatus, Pod, PodPhase } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';

/** The state of a pod on this node, from which its status is built. */
export interface PodView {
  readonly phase: PodPhase;
  readonly reason?: string;
  readonly message?: string;
  /** State of every container. */
  readonly state: ContainerState;
  /** State of the last run, if the containers were restarted. */
  readonly last?: ContainerState;
  readonly restarts?: number;
  /** Reason why a running pod is not ready. */
  readonly notReady?: string;
  /** Says whether the guest belongs to the target of the migration with this uid. */
  readonly committed?: { readonly uid: string; readonly is: boolean };
  /** Start time in milliseconds since the epoch; a start time in the status is kept. */
  readonly startedAtMs?: number;
}

export type PodStatus = NonNullable<Pod['status']>;

/** Bounded because every watch of pods receives the status. */
const MAX_MESSAGE_LENGTH = 1024;

export function buildPodStatus(
  pod: Pod,
  view: PodView,
  { hostIp, podIps, nowMs }: { hostIp: string; podIps?: readonly string[] | undefined; nowMs: number },
): PodStatus {
  const { phase, reason } = view;
  const old = pod.status ?? {};
  return {
    ...old,
    phase,
    reason,
    message: view.message?.slice(0, MAX_MESSAGE_LENGTH),
    hostIP: old.hostIP ?? hostIp,
    ...(podIps !== undefined && { podIP: podIps[0], podIPs: podIps.map((ip) => ({ ip })) }),
    startTime: old.startTime ?? timestamp(view.startedAtMs ?? nowMs),
    conditions: [...updateConditions(old.conditions, view, timestamp(nowMs))],
    containerStatuses: pod.spec.containers.map(({ name, image }) => containerStatus(pod, name, image, view)),
  };
}

function containerStatus(pod: Pod, name: string, image: string, view: PodView): ContainerStatus {
  const running = view.state.running !== undefined;
  return {
    name,
    image,
    imageID: image,
    ready: running && view.notReady === undefined,
    started: running,
    restartCount: Math.max(view.restarts ?? 0, reportedRestarts(pod, name)),
    state: view.state,
    ...(view.last === undefined ? { lastState: {} } : { lastState: view.last }),
    ...(view.state.waiting === undefined ? { containerID: `selfsame://${pod.metadata.uid ?? ''}-${name}` } : {}),
  };
}

/** Returns the restart count in the status. It must never decrease, because Jobs count failures with it. */
function reportedRestarts({ status }: Pod, name: string): number {
  return status?.containerStatuses?.find((container) => container.name === name)?.restartCount ?? 0;
}

function updateConditions(old: readonly Condition[] | undefined, view: PodView, now: string) {
  const ready = readiness(view);
  let conditions = old ?? [];
  conditions = setCondition(conditions, { type: 'Initialized', status: 'True' }, now);
  conditions = setCondition(conditions, { type: 'Ready', ...ready }, now);
  conditions = setCondition(conditions, { type: 'ContainersReady', ...ready }, now);
  return setCommitted(conditions, view, now);
}

/** Sets the committed condition, with the uid of the migration: the pod of one migration's target is the next one's source. */
function setCommitted(conditions: readonly Condition[], { committed }: PodView, now: string): readonly Condition[] {
  const type = MIGRATION_COMMITTED_CONDITION;
  if (committed === undefined || (!committed.is && findCondition(conditions, type) === undefined)) return conditions;
  const condition = committed.is
    ? ({ status: 'True', reason: 'Committed' } as const)
    : ({ status: 'False', reason: 'Undecided' } as const);
  return setCondition(conditions, { type, ...condition, message: committed.uid }, now);
}

function readiness({ phase, state, notReady: reason }: PodView) {
  if (state.running === undefined) return notReadyReason(phase);
  return reason === undefined ? ({ status: 'True' } as const) : ({ status: 'False', reason } as const);
}

/** Returns the Ready condition of a pod that does not run, with the kubelet's reasons. */
function notReadyReason(phase: PodPhase) {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' } as const;
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' } as const;
  return { status: 'False', reason: 'ContainersNotReady' } as const;
}

/** Returns the view of a pod whose containers wait. */
export function waitingView(reason: string, message: string): PodView {
  return { phase: 'Pending', state: { waiting: { reason, message: message.slice(0, MAX_MESSAGE_LENGTH) } } };
}

/** Returns the view of a pod that fails without having run. */
export function refusedView(reason: string, message: string): PodView {
  const waiting = { reason, message: message.slice(0, MAX_MESSAGE_LENGTH) };
  return { phase: 'Failed', reason, message, state: { waiting } };
}

/** The end of a container. */
interface Termination {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string | undefined;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

export function terminatedState({ startedAtMs, finishedAtMs, exitCode, reason, message }: Termination): ContainerState {
  const [startedAt, finishedAt] = [timestamp(startedAtMs), timestamp(finishedAtMs)];
  const text = message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE_LENGTH) };
  return { terminated: { exitCode, reason, ...text, startedAt, finishedAt } };
}
