/**
 * backoffLimitPerIndex: annotations of a pod contain how often its index failed before. The last failed pod of an index is
 * kept until its replacement exists, which takes over the count.
 */
import { countsAsFailure } from '#engine/controllers/job/failure-policy.ts';
import { hasIndex, type Indexes } from '#engine/controllers/job/indexes.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { completionIndex, finishedAtMs, hasFailed, indexesIn, isTracked } from '#engine/controllers/job/pod-state.ts';
import { backoffRemainingMs } from '#engine/controllers/job/backoff.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';
import { INT32_MAX } from '#engine/registry/kinds/shared/formats.ts';
import type { Stored } from '#kube/meta.ts';

const COUNT_KEY = 'batch.kubernetes.io/job-index-failure-count';
const IGNORED_COUNT_KEY = 'batch.kubernetes.io/job-index-ignored-failure-count';

/** The part of a Job's tally that concerns indexes. */
export interface IndexTally {
  readonly active: readonly Stored<EnginePod>[];
  /** Empty unless completionMode is Indexed. */
  readonly completedIndexes: Indexes;
  /** Set with backoffLimitPerIndex. */
  readonly failedIndexes: Indexes | undefined;
}

export function failureCount(pod: EnginePod): number {
  return readCount(pod, COUNT_KEY);
}

function allFailures(pod: EnginePod): number {
  return readCount(pod, COUNT_KEY) + readCount(pod, IGNORED_COUNT_KEY);
}

/** Returns 0 for an invalid annotation. Users can write annotations. */
function readCount({ metadata }: EnginePod, key: string): number {
  const text = metadata.annotations?.[key] ?? '';
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : 0;
  return value <= INT32_MAX ? value : 0;
}

/** Returns the last failed pod of each index that is to be tried again. */
export function lastFailedPods({ job, pods }: JobWorld, tally: IndexTally): ReadonlyMap<number, Stored<EnginePod>> {
  const { spec } = job;
  const last = new Map<number, Stored<EnginePod>>();
  if (tally.failedIndexes === undefined) return last;
  const activeIndexes = indexesIn(tally.active, spec);
  for (const pod of pods) {
    const index = completionIndex(pod, spec);
    if (index === undefined || !isTracked(pod) || !hasFailed(pod, spec)) continue;
    if ([tally.completedIndexes, tally.failedIndexes, activeIndexes].some((set) => hasIndex(set, index))) continue;
    const before = last.get(index);
    if (before === undefined || isLater(pod, before)) last.set(index, pod);
  }
  return last;
}

function isLater(pod: EnginePod, before: EnginePod): boolean {
  return allFailures(before) <= allFailures(pod) && finishedAtMs(before) <= finishedAtMs(pod);
}

export function indexWaitMs(replaced: EnginePod | undefined, nowMs: number): number {
  if (replaced === undefined) return 0;
  return backoffRemainingMs(allFailures(replaced) + 1, finishedAtMs(replaced), nowMs);
}

/** Returns the failure count annotations of a new pod. */
export function inheritedFailures(spec: JobSpec, replaced: EnginePod | undefined): Record<string, string> {
  if (spec.backoffLimitPerIndex === undefined) return {};
  if (replaced === undefined) return { [COUNT_KEY]: '0' };
  const counts = countsAsFailure(spec.podFailurePolicy, replaced);
  const ignored = readCount(replaced, IGNORED_COUNT_KEY) + (counts ? 0 : 1);
  return {
    [COUNT_KEY]: String(failureCount(replaced) + (counts ? 1 : 0)),
    ...(ignored > 0 ? { [IGNORED_COUNT_KEY]: String(ignored) } : {}),
  };
}
