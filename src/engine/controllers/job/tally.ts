/**
 * Counts the pods of a Job. A pod is counted in four steps, so that a crash between two of them neither loses it nor
 * counts it twice:
 *
 *   ended, tracked ──► uid in uncountedTerminatedPods ──► finalizer removed ──► uid removed, counter + 1 (one write)
 *
 * For succeeded indexes, the index in status.completedIndexes takes the role of the uid.
 */
import { countsAsFailure, matchFailurePolicy } from '#engine/controllers/job/failure-policy.ts';
import { failureCount, type IndexTally } from '#engine/controllers/job/index-failures.ts';
import { countIndexes, type Indexes, parseIndexes, unionOf } from '#engine/controllers/job/indexes.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { isIndexed } from '#engine/controllers/job/kinds.ts';
import {
  completionIndex,
  hasFailed,
  hasSucceeded,
  indexesIn,
  isActiveJobPod,
  isReadyJobPod,
  isTerminatingJobPod,
  isTracked,
} from '#engine/controllers/job/pod-state.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';

export interface UncountedPods {
  readonly succeeded: readonly string[];
  readonly failed: readonly string[];
}

export interface Tally extends IndexTally {
  readonly ready: number;
  readonly terminating: number;
  /** The number of pods that succeeded or failed, including those that are not in the counters yet. */
  readonly succeeded: number;
  readonly failed: number;
  /** The counters to write to the status. They include pods whose finalizer is removed. */
  readonly counted: { readonly succeeded: number; readonly failed: number };
  /** The uids of ended pods that still have their finalizer. */
  readonly uncounted: UncountedPods;
}

export function tallyPods({ job, pods }: JobWorld): Tally {
  const { spec, status } = job;
  const active = pods.filter(isActiveJobPod);
  const tracked = pods.filter(isTracked);
  const trackedUids = new Set(tracked.map(({ metadata }) => metadata.uid));
  const [succeededWaiting, succeededDone] = partitionByTracking(
    status?.uncountedTerminatedPods?.succeeded,
    trackedUids,
  );
  const [failedWaiting, failedDone] = partitionByTracking(status?.uncountedTerminatedPods?.failed, trackedUids);
  const uncounted = { succeeded: succeededWaiting, failed: failedWaiting };

  const known = new Set([...succeededWaiting, ...failedWaiting]);
  const newPods = tracked.filter((pod) => !known.has(pod.metadata.uid) && isValid(pod, spec));
  const newFailed = newPods.filter((pod) => hasFailed(pod, spec) && countsAsFailure(spec.podFailurePolicy, pod));
  const newSucceeded = newPods.filter(hasSucceeded);

  const completedIndexes = collectCompleted(spec, status?.completedIndexes, newSucceeded);
  const counted = {
    succeeded: isIndexed(spec) ? countIndexes(completedIndexes) : (status?.succeeded ?? 0) + succeededDone.length,
    failed: (status?.failed ?? 0) + failedDone.length,
  };
  const unlisted = isIndexed(spec) ? 0 : succeededWaiting.length + newSucceeded.length;
  return {
    active,
    ready: active.filter(isReadyJobPod).length,
    terminating: pods.filter(isTerminatingJobPod).length,
    succeeded: counted.succeeded + unlisted,
    failed: counted.failed + failedWaiting.length + newFailed.length,
    counted,
    uncounted,
    completedIndexes,
    failedIndexes: collectFailed(spec, status?.failedIndexes, tracked),
  };
}

/** Reports whether the pod counts. In an Indexed Job, a pod without a valid index does not. */
export function isValid(pod: EnginePod, spec: JobSpec): boolean {
  return !isIndexed(spec) || completionIndex(pod, spec) !== undefined;
}

function partitionByTracking(
  uids: readonly string[] | undefined,
  trackedUids: ReadonlySet<string>,
): [waiting: string[], done: string[]] {
  const waiting: string[] = [];
  const done: string[] = [];
  for (const uid of uids ?? []) (trackedUids.has(uid) ? waiting : done).push(uid);
  return [waiting, done];
}

function collectCompleted(spec: JobSpec, before: string | undefined, succeeded: readonly EnginePod[]): Indexes {
  const { completions = 0 } = spec;
  if (!isIndexed(spec)) return [];
  return unionOf(parseIndexes(before, completions), indexesIn(succeeded, spec));
}

function collectFailed(spec: JobSpec, before: string | undefined, tracked: readonly EnginePod[]): Indexes | undefined {
  const { completions = 0, backoffLimitPerIndex } = spec;
  if (!isIndexed(spec) || backoffLimitPerIndex === undefined) return undefined;
  const givenUp = tracked.filter((pod) => {
    if (!hasFailed(pod, spec)) return false;
    const { action } = matchFailurePolicy(spec.podFailurePolicy, pod);
    if (action === 'FailIndex') return true;
    return action !== 'Ignore' && failureCount(pod) >= backoffLimitPerIndex;
  });
  return unionOf(parseIndexes(before, completions), indexesIn(givenUp, spec));
}
