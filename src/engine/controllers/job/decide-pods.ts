/**
 * Decides which pods of a running Job are deleted or created. One plan never does both, because the pods to create depend
 * on those that remain. Pods that are deleted here do not count as failed.
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
  isReadyJobPod,
  isTerminatingJobPod,
  isTracked,
} from '#engine/controllers/job/pod-state.ts';
import type { Tally } from '#engine/controllers/job/tally.ts';
import type { Stored } from '#kube/meta.ts';

/** The maximum number of pods that one plan creates or deletes. */
export const MAX_PODS = 30;

interface PodPlan {
  readonly remove: readonly Stored<EnginePod>[];
  readonly create: readonly NewPod[];
  /** Set if more pods are missing, but may be created only after this time. */
  readonly waitMs?: number;
}

export const NO_PODS: PodPlan = { remove: [], create: [] };

/** `replaced` contains the failed pods whose indexes are to be tried again. */
export function decidePods(world: JobWorld, tally: Tally, replaced: ReadonlyMap<number, EnginePod>): PodPlan {
  const { job } = world;
  if (job.metadata.deletionTimestamp !== undefined) return NO_PODS;
  const wanted = countWantedActive(world, tally);
  const remove = findSurplus(world, tally.active, wanted);
  if (remove.length > 0) return { remove: remove.slice(0, MAX_PODS), create: [] };
  const terminating = replacesEndedPodsOnly(job.spec) ? tally.terminating : 0;
  const missing = Math.min(wanted - tally.active.length - terminating, MAX_PODS);
  if (missing <= 0) return NO_PODS;
  return isIndexed(job.spec) ? createIndexed(world, tally, missing, replaced) : createNonIndexed(world, tally, missing);
}

function countWantedActive({ job: { spec } }: JobWorld, { active, succeeded }: Tally): number {
  const { parallelism = 1, completions, suspend } = spec;
  if (suspend === true) return 0;
  // A work queue: once a pod has succeeded, the queue is done. The other pods may finish, and no more are created.
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(completions - succeeded, parallelism));
}

function findSurplus(
  { job: { spec } }: JobWorld,
  active: readonly Stored<EnginePod>[],
  wanted: number,
): Stored<EnginePod>[] {
  const ordered = active.toSorted((a, b) => progressRank(a) - progressRank(b));
  // An active pod without the finalizer is one whose deletion was interrupted. Its end would not be counted.
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

/** Pods that made the least progress are deleted first. */
function progressRank(pod: EnginePod): number {
  const scheduled = pod.spec.nodeName ? 1 : 0;
  const running = pod.status?.phase === 'Running' ? 2 : 0;
  return scheduled + running + (isReadyJobPod(pod) ? 4 : 0);
}

function createNonIndexed(world: JobWorld, tally: Tally, missing: number): PodPlan {
  const { job, failures, nowMs } = world;
  const waitMs = jobBackoffMs(failures, nowMs);
  if (waitMs > 0) return { ...NO_PODS, waitMs };
  // Attempt numbers start after those of ended pods, whose names are not used again.
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
  const terminating = replacesEndedPodsOnly(spec) ? pods.filter(isTerminatingJobPod) : [];
  const busy = indexesIn([...tally.active, ...terminating], spec);
  const unavailable = unionOf(tally.completedIndexes, tally.failedIndexes ?? [], busy);
  const create: NewPod[] = [];
  let waitMs = Infinity;
  for (const index of firstMissing(unavailable, spec.completions ?? 0, missing)) {
    const before = replaced.get(index);
    const indexMs = perIndex ? indexWaitMs(before, nowMs) : 0;
    waitMs = indexMs > 0 ? Math.min(waitMs, indexMs) : waitMs;
    if (indexMs > 0) continue;
    const { value: name } = freeNames(job, index, tally.failed, world.isTaken).next();
    create.push({ name, index, annotations: inheritedFailures(spec, before) });
  }
  return { remove: [], create, ...(waitMs < Infinity ? { waitMs } : {}) };
}
