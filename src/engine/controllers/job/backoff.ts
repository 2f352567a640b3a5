/**
 * The delay before a Job replaces failed pods: 10 s, 20 s, 40 s ... up to 10 min after the last failure, depending on the
 * number of failures since the last success. Pods may be deleted before the delay is over, so the controller remembers
 * when they ended. After a restart it learns this from the pods that still exist.
 */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { finishedAtMs, hasFailed, hasSucceeded, isTracked } from '#engine/controllers/job/pod-state.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';
import type { Stored } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';

const BACKOFF = { firstMs: 10_000, maxMs: 600_000 };
/** The maximum delay is reached with this many failures, so older ones need not be kept. */
const MAX_FAILURES = 8;

export interface FailureRecord {
  /** The newest failures after the last success, oldest first. */
  readonly failed: readonly { readonly uid: string; readonly atMs: number }[];
  readonly lastSuccessMs: number;
}

export const NO_FAILURES: FailureRecord = { failed: [], lastSuccessMs: 0 };

/** Returns the record updated with the pods' failures and successes. Each pod counts once. */
export function learnFailures(
  record: FailureRecord | undefined,
  pods: readonly Stored<EnginePod>[],
  spec: JobSpec,
): FailureRecord {
  const { failed, lastSuccessMs: known } = record ?? NO_FAILURES;
  const ends = new Map(failed.map(({ uid, atMs }) => [uid, atMs]));
  let lastSuccessMs = known;
  for (const pod of pods) {
    // After a restart, pods that were counted before matter as well, except pods that the controller deleted.
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
  // If the clock was set back, lastMs may be in the future. The delay then starts now.
  return Math.min(waitMs, Math.max(0, lastMs + waitMs - nowMs));
}
