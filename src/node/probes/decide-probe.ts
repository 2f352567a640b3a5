/**
 * Counts the results of probes like the kubelet. Pure.
 *
 *                failureThreshold consecutive failures
 *   healthy ◄───────────────────────────────────────────► unhealthy
 *                successThreshold consecutive successes
 *
 * A guest is not ready before its readiness probe succeeds, and alive until its liveness probe fails.
 */
import type { Probe } from '#api/domain/probe.ts';

export type ProbeKind = 'liveness' | 'readiness';

export interface ProbeState {
  readonly status: 'healthy' | 'unhealthy';
  readonly last: 'succeeded' | 'failed' | 'none';
  /** Number of consecutive results equal to `last`. */
  readonly streak: number;
}

interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** Returns the timing of a probe with Kubernetes' defaults, which also replace 0. */
export function probeTiming(probe: Probe, kind: ProbeKind): ProbeTiming {
  const { initialDelaySeconds = 0, periodSeconds, timeoutSeconds, successThreshold, failureThreshold } = probe;
  return {
    initialDelayMs: initialDelaySeconds * 1000,
    periodMs: (periodSeconds || 10) * 1000,
    timeoutMs: (timeoutSeconds || 1) * 1000,
    successThreshold: kind === 'liveness' ? 1 : successThreshold || 1,
    failureThreshold: failureThreshold || 3,
  };
}

/** Returns the state before the first result. `wasReady` is the result of an earlier agent of the node. */
export function initialState(kind: ProbeKind, wasReady = false): ProbeState {
  return { status: kind === 'liveness' || wasReady ? 'healthy' : 'unhealthy', last: 'none', streak: 0 };
}

export function applyResult(state: ProbeState, succeeded: boolean, timing: ProbeTiming): ProbeState {
  const last = succeeded ? 'succeeded' : 'failed';
  const streak = state.last === last ? state.streak + 1 : 1;
  const needed = succeeded ? timing.successThreshold : timing.failureThreshold;
  const status = streak >= needed ? (succeeded ? 'healthy' : 'unhealthy') : state.status;
  return { status, last, streak };
}

/** Returns the time until the first probe. The initial delay counts from the start of the guest. */
export function initialWaitMs({ initialDelayMs }: ProbeTiming, sinceStartMs: number): number {
  return Math.max(0, initialDelayMs - sinceStartMs);
}
