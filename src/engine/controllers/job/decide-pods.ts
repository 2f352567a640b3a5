/**
 * Which pods of a Job that goes on are too many and which are missing. Never both at once: what is made depends on what
 * is left. Pods that are taken away here leave the books, too: they did not fail.
 */
import { jobBackoffMs } from '#engine/controllers/job/backoff.ts';
import { freeNames, type NewPod } from '#engine/controllers/job/build-pod.ts';
import { indexWaitMs, inheritedFailures } from '#engine/controllers/job/index-failures.ts';
import { firstMissing, unionOf } from '#engine/controllers/job/indexes.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { isIndexed, replacesEndedPodsOnly } from '#engine/controllers/job/kinds.ts';
import {
  completionIndex,
  indexesIn,
  isReadyPod,
  isTerminatingPod,
  isTracked,
} from '#engine/controllers/job/pod-state.ts';
import type { Tally } from '#engine/controllers/job/tally.ts';
import type { Stored } from '#kube/meta.ts';

/** How many of them one plan makes or takes away. */
export const MAX_PODS = 30;

export interface PodPlan {
  readonly remove: readonly Stored<EnginePod>[];
  readonly create: readonly NewPod[];
  /** More are missing, but not before this time. */
  readonly waitMs?: number;
}

export const NO_PODS: PodPlan = { remove: [], create: [] };

/** `replaced`: the failed pods whose indexes are to be tried again. */
export function decidePods(world: JobWorld, tally: Tally, replaced: ReadonlyMap<number, EnginePod>): PodPlan {
  const { job } = world;
  if (job.metadata.deletionTimestamp !== undefined) return NO_PODS;
  const wanted = countWantedActive(world, tally);
  const remove = findSurplus(world, tally.active, wanted);
  if (remove.length > 0) return { remove: remove.slice(0, MAX_PODS), create: [] };
  const leaving = replacesEndedPodsOnly(job.spec) ? tally.terminating : 0;
  const missing = Math.min(wanted - tally.active.length - leaving, MAX_PODS);
  if (missing <= 0) return NO_PODS;
  return isIndexed(job.spec) ? createIndexed(world, tally, missing, replaced) : createNonIndexed(world, tally, missing);
}

function countWantedActive({ job: { spec } }: JobWorld, { active, succeeded }: Tally): number {
  const { parallelism = 1, completions, suspend } = spec;
  if (suspend === true) return 0;
  // Of a work queue's pods one has seen the end of the work: the others may finish, and no more are needed.
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(completions - succeeded, parallelism));
}

function findSurplus(
  { job: { spec } }: JobWorld,
  active: readonly Stored<EnginePod>[],
  wanted: number,
): Stored<EnginePod>[] {
  const ordered = active.toSorted((a, b) => progressRank(a) - progressRank(b));
  // Without its finalizer an active pod is one that we began to take away, and its end would go unseen.
  const remove = ordered.filter((pod) => !isTracked(pod));
  const left = ordered.filter(isTracked);
  if (isIndexed(spec)) {
    const best = new Map<number, Stored<EnginePod>>();
    for (const pod of left) {
      const index = completionIndex(pod, spec);
      if (index !== undefined) best.set(index, pod);
    }
    const kept = new Set(best.values());
    remove.push(...left.filter((pod) => !kept.has(pod)));
    left.splice(0, left.length, ...left.filter((pod) => kept.has(pod)));
  }
  return [...remove, ...left.slice(0, Math.max(0, left.length - wanted))];
}

/** Those go first that have come least far. */
function progressRank(pod: EnginePod): number {
  const scheduled = pod.spec.nodeName ? 1 : 0;
  const running = pod.status?.phase === 'Running' ? 2 : 0;
  return scheduled + running + (isReadyPod(pod) ? 4 : 0);
}

function createNonIndexed(world: JobWorld, tally: Tally, missing: number): PodPlan {
  const { job, failures, nowMs } = world;
  const waitMs = jobBackoffMs(failures, nowMs);
  if (waitMs > 0) return { ...NO_PODS, waitMs };
  // The turns of those who have ended are over: their names are not given again.
  const names = freeNames(job, undefined, tally.succeeded + tally.failed, world.isTaken);
  return { remove: [], create: Array.from({ length: missing }, () => ({ name: names.next().value })) };
}

function createIndexed(
  world: JobWorld,
  tally: Tally,
  missing: number,
  replaced: ReadonlyMap<number, EnginePod>,
): PodPlan {
  const { job, pods, failures, nowMs } = world;
  const { spec } = job;
  const perIndex = spec.backoffLimitPerIndex !== undefined;
  const allWaitMs = perIndex ? 0 : jobBackoffMs(failures, nowMs);
  if (allWaitMs > 0) return { ...NO_PODS, waitMs: allWaitMs };
  const leaving = replacesEndedPodsOnly(spec) ? pods.filter(isTerminatingPod) : [];
  const busy = indexesIn([...tally.active, ...leaving], spec);
  const settled = unionOf(tally.completedIndexes, tally.failedIndexes ?? [], busy);
  const create: NewPod[] = [];
  let waitMs = Infinity;
  for (const index of firstMissing(settled, spec.completions ?? 0, missing)) {
    const before = replaced.get(index);
    const indexMs = perIndex ? indexWaitMs(before, nowMs) : 0;
    waitMs = indexMs > 0 ? Math.min(waitMs, indexMs) : waitMs;
    if (indexMs > 0) continue;
    const { value: name } = freeNames(job, index, tally.failed, world.isTaken).next();
    create.push({ name, index, annotations: inheritedFailures(spec, before) });
  }
  return { remove: [], create, ...(waitMs < Infinity ? { waitMs } : {}) };
}
