/**
 * The status of a pod as this node reports it, computed whole from what happened to its containers. What others say in it
 * (PodScheduled, DisruptionTarget, the QoS class) stays. Pure.
 */
import { MIGRATION_COMMITTED_CONDITION } from '#api/names.ts';
import { findCondition, setCondition, type Condition } from '#kube/conditions.ts';
import type { ContainerState, ContainerStatus, Pod, PodPhase } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';

export interface PodView {
  readonly phase: PodPhase;
  readonly reason?: string;
  readonly message?: string;
  /** Every container is in it; `restarts` and `last` where there were any. */
  readonly state: ContainerState;
  readonly last?: ContainerState;
  readonly restarts?: number;
  /** Why it is not ready although it runs. */
  readonly notReady?: string;
  /** Whether its guest belongs to the target of this migration. */
  readonly committed?: { readonly uid: string; readonly is: boolean };
  /** When the pod began here, in milliseconds; what is reported already stays. */
  readonly startedAtMs?: number;
}

export type PodStatus = NonNullable<Pod['status']>;

/** The API refuses no length, but statuses travel to everybody who watches. */
const MAX_MESSAGE = 1024;

export function podStatus(pod: Pod, view: PodView, { hostIp, nowMs }: { hostIp: string; nowMs: number }): PodStatus {
  const { phase, reason } = view;
  const old = pod.status ?? {};
  return {
    ...old,
    phase,
    reason,
    message: view.message?.slice(0, MAX_MESSAGE),
    hostIP: old.hostIP ?? hostIp,
    startTime: old.startTime ?? timestamp(view.startedAtMs ?? nowMs),
    conditions: [...conditionsOf(old.conditions, view, timestamp(nowMs))],
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
    restartCount: Math.max(view.restarts ?? 0, restartsBefore(pod, name)),
    state: view.state,
    ...(view.last === undefined ? { lastState: {} } : { lastState: view.last }),
    ...(view.state.waiting === undefined ? { containerID: `selfsame://${pod.metadata.uid ?? ''}-${name}` } : {}),
  };
}

/** It never goes back: Jobs count their failures by it. */
function restartsBefore({ status }: Pod, name: string): number {
  return status?.containerStatuses?.find((one) => one.name === name)?.restartCount ?? 0;
}

function conditionsOf(old: readonly Condition[] | undefined, view: PodView, now: string) {
  const ready = readiness(view);
  let conditions = old ?? [];
  conditions = setCondition(conditions, { type: 'Initialized', status: 'True' }, now);
  conditions = setCondition(conditions, { type: 'Ready', ...ready }, now);
  conditions = setCondition(conditions, { type: 'ContainersReady', ...ready }, now);
  return withCommitted(conditions, view, now);
}

/** Tells which migration it is about: the pod that a guest came to is the one that it leaves next. */
function withCommitted(conditions: readonly Condition[], { committed }: PodView, now: string): readonly Condition[] {
  const type = MIGRATION_COMMITTED_CONDITION;
  if (committed === undefined || (!committed.is && findCondition(conditions, type) === undefined)) return conditions;
  const said = committed.is
    ? ({ status: 'True', reason: 'Committed' } as const)
    : ({ status: 'False', reason: 'Undecided' } as const);
  return setCondition(conditions, { type, ...said, message: committed.uid }, now);
}

function readiness({ phase, state, notReady: reason }: PodView) {
  if (state.running === undefined) return notReady(phase);
  return reason === undefined ? ({ status: 'True' } as const) : ({ status: 'False', reason } as const);
}

/** The kubelet's reasons. */
function notReady(phase: PodPhase) {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' } as const;
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' } as const;
  return { status: 'False', reason: 'ContainersNotReady' } as const;
}

/** Containers that wait for something, with a word for programs and a sentence for people. */
export function waitingView(reason: string, message: string): PodView {
  return { phase: 'Pending', state: { waiting: { reason, message: message.slice(0, MAX_MESSAGE) } } };
}

/** A pod that never ran anything and never will. */
export function refusedView(reason: string, message: string): PodView {
  const waiting = { reason, message: message.slice(0, MAX_MESSAGE) };
  return { phase: 'Failed', reason, message, state: { waiting } };
}

export interface Ending {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string | undefined;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

export function terminated({ startedAtMs, finishedAtMs, exitCode, reason, message }: Ending): ContainerState {
  const [startedAt, finishedAt] = [timestamp(startedAtMs), timestamp(finishedAtMs)];
  const said = message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE) };
  return { terminated: { exitCode, reason, ...said, startedAt, finishedAt } };
}
