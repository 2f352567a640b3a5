/**
 * Decides what happens next to a pod that is no launcher: this program runs natively, everything else is refused. Pure.
 *
 *   start ─► running ─► exited ─┬─ restartPolicy says so: again, after a time that grows
 *                               └─ Succeeded or Failed
 */
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import { timestamp } from '#lib/clock.ts';
import { commandFault } from '#node/pods/program.ts';
import type { Exit, RunState } from '#node/pods/program-run.ts';
import { podRole, type PodRole } from '#node/pods/pod-role.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { refusedView, terminated, waitingView, type PodView } from '#node/pods/pod-status.ts';

export type ProgramAction =
  | { readonly do: 'start' }
  | { readonly do: 'kill'; readonly signal: 'SIGTERM' | 'SIGKILL' }
  | { readonly do: 'report'; readonly view: PodView }
  | { readonly do: 'removePod' }
  | { readonly do: 'lookAgain'; readonly afterMs: number };

export interface ProgramWorld {
  readonly pod: Stored<Pod>;
  /** Undefined where this agent never started it. */
  readonly run: RunState | undefined;
  readonly nowMs: number;
}

/** The kubelet's delays between restarts; before the first there is none. */
const RESTART = { firstMs: 10_000, maxMs: 300_000 };
const DEFAULT_GRACE_SECONDS = 30;

export function decideProgram(world: ProgramWorld): readonly ProgramAction[] {
  const { pod, run, nowMs } = world;
  if (pod.metadata.deletionTimestamp !== undefined) return decideEnd(world);
  if (hasEnded(pod)) return [];
  const refusal = refusalOf(pod, podRole(pod));
  if (refusal !== undefined) return [{ do: 'report', view: refusal }];
  if (run?.runningSinceMs !== undefined) return [{ do: 'report', view: runningView(run, run.runningSinceMs) }];
  // It ran under an agent that is no more, and ended with it.
  const lost = run === undefined && pod.status?.phase === 'Running';
  if (lost && pod.spec.restartPolicy === 'Never') {
    return decideAfter(world, { code: 137, startedAtMs: nowMs, finishedAtMs: nowMs });
  }
  return run?.lastExit === undefined ? [{ do: 'start' }] : decideAfter(world, run.lastExit);
}

function decideAfter({ pod, run, nowMs }: ProgramWorld, exit: Exit): readonly ProgramAction[] {
  const { restartPolicy = 'Always' } = pod.spec;
  const again = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exit.code !== 0);
  const restarts = Math.max(0, (run?.starts ?? 1) - 1);
  const ended = endedState(exit);
  if (!again) {
    const phase = exit.code === 0 ? 'Succeeded' : 'Failed';
    return [{ do: 'report', view: { phase, state: ended, restarts, startedAtMs: exit.startedAtMs } }];
  }
  const quickRestarts = (run?.quickExits ?? 1) - 1;
  const delayMs = quickRestarts <= 0 ? 0 : backoffMs(quickRestarts, RESTART);
  const waitMs = exit.finishedAtMs + delayMs - nowMs;
  if (waitMs <= 0) return [{ do: 'start' }];
  const message = `back-off restarting failed container ${pod.spec.containers[0]?.name ?? ''}`;
  const state = { waiting: { reason: 'CrashLoopBackOff', message } };
  return [
    { do: 'report', view: { phase: 'Running', state, last: ended, restarts } },
    { do: 'lookAgain', afterMs: waitMs },
  ];
}

function decideEnd({ pod, run, nowMs }: ProgramWorld): readonly ProgramAction[] {
  if (run?.runningSinceMs === undefined) {
    const actions: ProgramAction[] = [];
    if (run?.lastExit !== undefined && !hasEnded(pod)) {
      const phase = run.lastExit.code === 0 ? 'Succeeded' : 'Failed';
      const view: PodView = { phase, state: endedState(run.lastExit), restarts: Math.max(0, run.starts - 1) };
      actions.push({ do: 'report', view });
    }
    if (pod.metadata.deletionGracePeriodSeconds !== 0) actions.push({ do: 'removePod' });
    return actions;
  }
  const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
  if (run.askedAtMs === undefined && graceMs > 0) {
    return [
      { do: 'kill', signal: 'SIGTERM' },
      { do: 'lookAgain', afterMs: graceMs },
    ];
  }
  const leftMs = (run.askedAtMs ?? nowMs) + graceMs - nowMs;
  return leftMs > 0 ? [{ do: 'lookAgain', afterMs: leftMs }] : [{ do: 'kill', signal: 'SIGKILL' }];
}

function refusalOf({ spec }: Pod, role: PodRole): PodView | undefined {
  if (role.is === 'unsupported') {
    const message = `The image "${role.image}" cannot run here: this node runs VMs and Jobs of this program only.`;
    return role.waits ? waitingView('ImageUnsupported', message) : refusedView('ImageUnsupported', message);
  }
  const [container, ...others] = spec.containers;
  const inits = spec['initContainers'];
  if (others.length > 0 || (Array.isArray(inits) && inits.length > 0)) {
    return refusedView('PodUnsupported', 'A pod of this program has one container and no init containers.');
  }
  const fault = container === undefined ? 'no container' : commandFault(container);
  return fault === undefined
    ? undefined
    : refusedView('CommandUnsupported', `This pod cannot run here: it has ${fault}.`);
}

function runningView({ starts, lastExit }: RunState, sinceMs: number): PodView {
  return {
    phase: 'Running',
    state: { running: { startedAt: timestamp(sinceMs) } },
    restarts: Math.max(0, starts - 1),
    startedAtMs: sinceMs,
    ...(lastExit === undefined ? {} : { last: endedState(lastExit) }),
  };
}

export function endedState({ code, startedAtMs, finishedAtMs }: Exit) {
  return terminated({ exitCode: code, reason: code === 0 ? 'Completed' : 'Error', startedAtMs, finishedAtMs });
}
