/**
 * What answers of a guest mean: as the kubelet counts them. Pure.
 *
 *             failureThreshold failures in a row
 *   good ◄───────────────────────────────────────► bad
 *             successThreshold answers in a row
 *
 * A guest is not ready before it has said so, and lives until the contrary is shown.
 */
import type { Probe } from '#api/domain/probe.ts';

export type ProbeKind = 'liveness' | 'readiness';

export interface ProbeState {
  readonly verdict: 'good' | 'bad';
  readonly last: 'answered' | 'failed' | 'none';
  /** How often in a row the last came. */
  readonly streak: number;
}

export interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** Kubernetes' defaults; what is 0 is one of those, as there. */
export function timingOf(probe: Probe, kind: ProbeKind): ProbeTiming {
  const { initialDelaySeconds = 0, periodSeconds, timeoutSeconds, successThreshold, failureThreshold } = probe;
  return {
    initialDelayMs: initialDelaySeconds * 1000,
    periodMs: (periodSeconds || 10) * 1000,
    timeoutMs: (timeoutSeconds || 1) * 1000,
    successThreshold: kind === 'liveness' ? 1 : successThreshold || 1,
    failureThreshold: failureThreshold || 3,
  };
}

/** `wasReady`: an earlier agent of the node found it so. */
export function firstState(kind: ProbeKind, wasReady = false): ProbeState {
  return { verdict: kind === 'liveness' || wasReady ? 'good' : 'bad', last: 'none', streak: 0 };
}

export function afterAnswer(state: ProbeState, answered: boolean, timing: ProbeTiming): ProbeState {
  const last = answered ? 'answered' : 'failed';
  const streak = state.last === last ? state.streak + 1 : 1;
  const needed = answered ? timing.successThreshold : timing.failureThreshold;
  const verdict = streak >= needed ? (answered ? 'good' : 'bad') : state.verdict;
  return { verdict, last, streak };
}

/** When it is asked first, counted from the start of the guest; at once where that is past. */
export function firstWaitMs({ initialDelayMs }: ProbeTiming, sinceStartMs: number): number {
  return Math.max(0, initialDelayMs - sinceStartMs);
}
