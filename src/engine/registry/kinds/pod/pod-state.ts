/** Summarizes the state of a pod for `kubectl get pods`: READY, STATUS and RESTARTS. */
import type { containerStatus, podStatusSchema } from '#engine/registry/kinds/pod/pod-status.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { isTrue } from '#kube/conditions.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

type PodStatus = Infer<typeof podStatusSchema>;
type ContainerStatus = Infer<typeof containerStatus>;
type Terminated = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

interface PodState {
  readonly reason: string;
  readonly ready: number;
  readonly total: number;
  readonly restarts: number;
  /** In milliseconds; undefined if nothing restarted yet. */
  readonly lastRestart: number | undefined;
}

interface PodView {
  readonly metadata: ObjectMeta;
  readonly spec?: EnginePodSpec;
  readonly status?: PodStatus;
}

export function podStateOf({ metadata, spec, status = {} }: PodView): PodState {
  const phase = status.phase ?? '';
  let reason = status.reason || phase;
  const gated = status.conditions?.some((c) => c.type === 'PodScheduled' && c.reason === 'SchedulingGated');
  if (gated) reason = 'SchedulingGated';

  const init = initState(spec, status);
  let counts: Counts = init;
  if (init.reason === undefined || isTrue(status.conditions, 'Initialized')) {
    const main = mainState(status, init.reason ?? reason, init.sidecars);
    counts = { ...main, ready: init.ready + main.ready };
    reason = main.reason;
  } else {
    reason = init.reason;
  }

  if (metadata.deletionTimestamp !== undefined) {
    if (status.reason === 'NodeLost') reason = 'Unknown';
    else if (phase !== 'Succeeded' && phase !== 'Failed') reason = 'Terminating';
  }
  const sidecars = spec?.initContainers?.filter((container) => container.restartPolicy === 'Always').length ?? 0;
  return {
    reason,
    ready: counts.ready,
    total: (spec?.containers?.length ?? 0) + sidecars,
    restarts: counts.restarts,
    lastRestart: counts.lastRestart,
  };
}

interface Counts {
  ready: number;
  restarts: number;
  lastRestart: number | undefined;
}

interface InitState extends Counts {
  /** Set while the pod initializes or if initialization failed. */
  reason: string | undefined;
  /** Counts of the init containers that keep running beside the main ones. */
  sidecars: Counts;
}

function initState(spec: EnginePodSpec | undefined, status: PodStatus): InitState {
  const state: InitState = { ...nothing(), reason: undefined, sidecars: nothing() };
  const containers = spec?.initContainers ?? [];
  for (const [i, container] of (status.initContainerStatuses ?? []).entries()) {
    const restartable = containers.find(({ name }) => name === container.name)?.restartPolicy === 'Always';
    countRestarts(state, container);
    if (restartable) countRestarts(state.sidecars, container);
    const { terminated, waiting } = container.state ?? {};
    if (terminated !== undefined && terminated.exitCode === 0) continue;
    if (restartable && container.started === true) {
      if (container.ready) state.ready++;
      continue;
    }
    if (terminated !== undefined) state.reason = `Init:${endOf(terminated)}`;
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') state.reason = `Init:${waiting.reason}`;
    else state.reason = `Init:${i}/${containers.length}`;
    break;
  }
  return state;
}

function mainState(status: PodStatus, before: string, sidecars: Counts): Counts & { reason: string } {
  const state = { ...sidecars, ready: 0, reason: before };
  let running = false;
  // The first container determines the reason.
  for (const container of (status.containerStatuses ?? []).toReversed()) {
    countRestarts(state, container);
    const { waiting, terminated, running: isRunning } = container.state ?? {};
    if (waiting?.reason) {
      state.reason = waiting.reason;
    } else if (terminated !== undefined) {
      state.reason = endOf(terminated);
    } else if (container.ready && isRunning !== undefined) {
      running = true;
      state.ready++;
    }
  }
  // A completed container does not complete a pod in which another one still runs.
  if (state.reason === 'Completed' && running) {
    state.reason = isTrue(status.conditions, 'Ready') ? 'Running' : 'NotReady';
  }
  return state;
}

function nothing(): Counts {
  return { ready: 0, restarts: 0, lastRestart: undefined };
}

function countRestarts(counts: Counts, { restartCount, lastState }: ContainerStatus): void {
  counts.restarts += restartCount;
  const finished = lastState?.terminated?.finishedAt;
  const at = finished === undefined ? NaN : Date.parse(finished);
  if (at > (counts.lastRestart ?? -Infinity)) counts.lastRestart = at;
}

function endOf({ reason, signal, exitCode }: Terminated): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}
