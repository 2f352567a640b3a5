/**
 * Decides about a pod that is not a launcher: this program runs as a process, everything else is refused. Pure.
 *
 *   start ─► running ─► exited ─┬─ by restartPolicy: started again with backoff
 *                               └─ Succeeded or Failed
 */
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import { timestamp } from '#lib/clock.ts';
import { checkCommand } from '#node/pods/program.ts';
import type { Exit, ProgramState } from '#node/pods/program-run.ts';
import { podRole, type PodRole } from '#node/pods/pod-role.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { refusedView, terminatedState, waitingView, type PodView } from '#node/pods/pod-status.ts';

export type ProgramAction =
  | { readonly do: 'start' }
  | { readonly do: 'kill'; readonly signal: 'SIGTERM' | 'SIGKILL' }
  | { readonly do: 'report'; readonly view: PodView }
  | { readonly do: 'removePod' }
  | { readonly do: 'recheck'; readonly afterMs: number };

interface ProgramWorld {
  readonly pod: Stored<Pod>;
  /** Undefined if this agent has not started it. */
  readonly run: ProgramState | undefined;
  readonly nowMs: number;
}

/** The kubelet's backoff between restarts. The first restart is immediate. */
const RESTART_BACKOFF = { firstMs: 10_000, maxMs: 300_000 };
const DEFAULT_GRACE_SECONDS = 30;

export function decideProgram(world: ProgramWorld): readonly ProgramAction[] {
  const { pod, run, nowMs } = world;
  if (pod.metadata.deletionTimestamp !== undefined) return decideDeletion(world);
  if (hasEnded(pod)) return [];
  const refusal = refuseProgram(pod, podRole(pod));
  if (refusal !== undefined) return [{ do: 'report', view: refusal }];
  if (run?.runningSinceMs !== undefined) return [{ do: 'report', view: runningView(run, run.runningSinceMs) }];
  // The process ran under an earlier agent and ended with it.
  const isLost = run === undefined && pod.status?.phase === 'Running';
  if (isLost && pod.spec.restartPolicy === 'Never') {
    return decideAfterExit(world, { code: 137, startedAtMs: nowMs, finishedAtMs: nowMs });
  }
  return run?.lastExit === undefined ? [{ do: 'start' }] : decideAfterExit(world, run.lastExit);
}

function decideAfterExit({ pod, run, nowMs }: ProgramWorld, exit: Exit): readonly ProgramAction[] {
  const { restartPolicy = 'Always' } = pod.spec;
  const isRestarted = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exit.code !== 0);
  const restarts = Math.max(0, (run?.starts ?? 1) - 1);
  const ended = exitState(exit);
  if (!isRestarted) {
    const phase = exit.code === 0 ? 'Succeeded' : 'Failed';
    return [{ do: 'report', view: { phase, state: ended, restarts, startedAtMs: exit.startedAtMs } }];
  }
  const quickRestarts = (run?.quickExits ?? 1) - 1;
  const delayMs = quickRestarts <= 0 ? 0 : backoffMs(quickRestarts, RESTART_BACKOFF);
  const waitMs = exit.finishedAtMs + delayMs - nowMs;
  if (waitMs <= 0) return [{ do: 'start' }];
  const message = `back-off restarting failed container ${pod.spec.containers[0]?.name ?? ''}`;
  const state = { waiting: { reason: 'CrashLoopBackOff', message } };
  return [
    { do: 'report', view: { phase: 'Running', state, last: ended, restarts } },
    { do: 'recheck', afterMs: waitMs },
  ];
}

function decideDeletion({ pod, run, nowMs }: ProgramWorld): readonly ProgramAction[] {
  if (run?.runningSinceMs === undefined) {
    const actions: ProgramAction[] = [];
    if (run?.lastExit !== undefined && !hasEnded(pod)) {
      const phase = run.lastExit.code === 0 ? 'Succeeded' : 'Failed';
      const view: PodView = { phase, state: exitState(run.lastExit), restarts: Math.max(0, run.starts - 1) };
      actions.push({ do: 'report', view });
    }
    if (pod.metadata.deletionGracePeriodSeconds !== 0) actions.push({ do: 'removePod' });
    return actions;
  }
  const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
  if (run.stopRequestedAtMs === undefined && graceMs > 0) {
    return [
      { do: 'kill', signal: 'SIGTERM' },
      { do: 'recheck', afterMs: graceMs },
    ];
  }
  const remainingMs = (run.stopRequestedAtMs ?? nowMs) + graceMs - nowMs;
  return remainingMs > 0 ? [{ do: 'recheck', afterMs: remainingMs }] : [{ do: 'kill', signal: 'SIGKILL' }];
}

function refuseProgram({ spec }: Pod, role: PodRole): PodView | undefined {
  if (role.is === 'unsupported') {
    const message = `Cannot run image "${role.image}": this node runs only VMs and Jobs of Selfsame itself.`;
    return role.waits ? waitingView('ImageUnsupported', message) : refusedView('ImageUnsupported', message);
  }
  const [container, ...others] = spec.containers;
  const inits = spec['initContainers'];
  if (others.length > 0 || (Array.isArray(inits) && inits.length > 0)) {
    return refusedView(
      'PodUnsupported',
      'Cannot run this pod: a pod of this image must have exactly one container and no init containers.',
    );
  }
  const refusal = container === undefined ? 'no container' : checkCommand(container);
  return refusal === undefined
    ? undefined
    : refusedView('CommandUnsupported', `Cannot run this pod: it has ${refusal}.`);
}

function runningView({ starts, lastExit }: ProgramState, sinceMs: number): PodView {
  return {
    phase: 'Running',
    state: { running: { startedAt: timestamp(sinceMs) } },
    restarts: Math.max(0, starts - 1),
    startedAtMs: sinceMs,
    ...(lastExit === undefined ? {} : { last: exitState(lastExit) }),
  };
}

export function exitState({ code, startedAtMs, finishedAtMs }: Exit) {
  return terminatedState({ exitCode: code, reason: code === 0 ? 'Completed' : 'Error', startedAtMs, finishedAtMs });
}
