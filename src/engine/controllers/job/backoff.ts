/**
 * How long a Job waits before it replaces failed pods: 10 s, 20 s, 40 s ... up to 10 min after the last of the failures
 * since the last success. Pods may be gone before that time is over, so that the controller remembers their ends; after
 * a restart it learns them again from the pods that are still there.
 */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { finishedAtMs, hasFailed, hasSucceeded, isTracked } from '#engine/controllers/job/pod-state.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';
import type { Stored } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';

const BACKOFF = { firstMs: 10_000, maxMs: 600_000 };
/** More failures than these do not make it wait longer. */
const MAX_FAILURES = 8;

export interface FailureRecord {
  /** The newest failures after the last success, in order of time. */
  readonly failed: readonly { readonly uid: string; readonly atMs: number }[];
  readonly lastSuccessMs: number;
}

export const NO_FAILURES: FailureRecord = { failed: [], lastSuccessMs: 0 };

/** The record with what the pods show; a pod seen twice counts once. */
export function learnFailures(
  record: FailureRecord | undefined,
  pods: readonly Stored<EnginePod>[],
  spec: JobSpec,
): FailureRecord {
  const { failed, lastSuccessMs: known } = record ?? NO_FAILURES;
  const ends = new Map(failed.map(({ uid, atMs }) => [uid, atMs]));
  let lastSuccessMs = known;
  for (const pod of pods) {
    // What was counted before the first look ended on its own account, unless it was told to go.
    const counted = record === undefined && pod.metadata.deletionTimestamp === undefined;
    if (!isTracked(pod) && !counted) continue;
    if (hasSucceeded(pod)) lastSuccessMs = Math.max(lastSuccessMs, finishedAtMs(pod));
    else if (hasFailed(pod, spec) && !ends.has(pod.metadata.uid)) ends.set(pod.metadata.uid, finishedAtMs(pod));
  }
  const after = [...ends].map(([uid, atMs]) => ({ uid, atMs })).filter(({ atMs }) => atMs > lastSuccessMs);
  return { failed: after.sort((a, b) => a.atMs - b.atMs).slice(-MAX_FAILURES), lastSuccessMs };
}

export function jobBackoffMs({ failed }: FailureRecord, nowMs: number): number {
  const last = failed.at(-1);
  return last === undefined ? 0 : backoffRemainingMs(failed.length, last.atMs, nowMs);
}

export function backoffRemainingMs(failures: number, lastMs: number, nowMs: number): number {
  const waitMs = backoffMs(failures, BACKOFF);
  // A failure in the future is a clock that was set: no longer than from now on.
  return Math.min(waitMs, Math.max(0, lastMs + waitMs - nowMs));
}
