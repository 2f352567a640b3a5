/**
 * Which pods of a Job that goes on are too many and which are missing. Never both at once: what is made depends on what
 * is left. Pods that are taken away here leave the books, too: they did not fail.
 */
import { remainingMs } from '#engine/controllers/job/backoff.ts';
import { freeNames, type NewPod } from '#engine/controllers/job/build-pod.ts';
import { indexWaitMs, inheritedFailures } from '#engine/controllers/job/index-failures.ts';
import { firstMissing, unionOf } from '#engine/controllers/job/indexes.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type Pod } from '#engine/controllers/kinds.ts';
import { isIndexed, waitsForEnd } from '#engine/controllers/job/kinds.ts';
import { completionIndex, indexesIn, isReady, isTerminating, isTracked } from '#engine/controllers/job/pod-state.ts';
import type { Tally } from '#engine/controllers/job/tally.ts';
import type { Stored } from '#kube/meta.ts';

/** How many of them one plan makes or takes away. */
export const MAX_PODS = 30;

export interface PodPlan {
  readonly remove: readonly Stored<Pod>[];
  readonly create: readonly NewPod[];
  /** More are missing, but not before this time. */
  readonly waitMs?: number;
}

export const NO_PODS: PodPlan = { remove: [], create: [] };

/** `replaced`: the failed pods whose indexes are to be tried again. */
export function decidePods(world: JobWorld, tally: Tally, replaced: ReadonlyMap<number, Pod>): PodPlan {
  const { job } = world;
  if (job.metadata.deletionTimestamp !== undefined) return NO_PODS;
  const wanted = wantedActive(world, tally);
  const remove = surplus(world, tally.active, wanted);
  if (remove.length > 0) return { remove: remove.slice(0, MAX_PODS), create: [] };
  const leaving = waitsForEnd(job.spec) ? tally.terminating : 0;
  const missing = Math.min(wanted - tally.active.length - leaving, MAX_PODS);
  if (missing <= 0) return NO_PODS;
  return isIndexed(job.spec) ? createIndexed(world, tally, missing, replaced) : createPlain(world, tally, missing);
}

function wantedActive({ job: { spec } }: JobWorld, { active, succeeded }: Tally): number {
  const { parallelism = 1, completions, suspend } = spec;
  if (suspend === true) return 0;
  // Of a work queue's pods one has seen the end of the work: the others may finish, and no more are needed.
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(completions - succeeded, parallelism));
}

function surplus({ job: { spec } }: JobWorld, active: readonly Stored<Pod>[], wanted: number): Stored<Pod>[] {
  const ordered = active.toSorted((a, b) => worth(a) - worth(b));
  // Without its finalizer an active pod is one that we began to take away, and its end would go unseen.
  const remove = ordered.filter((pod) => !isTracked(pod));
  const left = ordered.filter(isTracked);
  if (isIndexed(spec)) {
    const best = new Map<number, Stored<Pod>>();
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
function worth(pod: Pod): number {
  const scheduled = pod.spec.nodeName ? 1 : 0;
  const running = pod.status?.phase === 'Running' ? 2 : 0;
  return scheduled + running + (isReady(pod) ? 4 : 0);
}

function createPlain(world: JobWorld, tally: Tally, missing: number): PodPlan {
  const { job, failures, nowMs } = world;
  const waitMs = remainingMs(failures, nowMs);
  if (waitMs > 0) return { ...NO_PODS, waitMs };
  // The turns of those who have ended are over: their names are not given again.
  const names = freeNames(job, undefined, tally.succeeded + tally.failed, world.isTaken);
  return { remove: [], create: Array.from({ length: missing }, () => ({ name: names.next().value })) };
}

function createIndexed(world: JobWorld, tally: Tally, missing: number, replaced: ReadonlyMap<number, Pod>): PodPlan {
  const { job, pods, failures, nowMs } = world;
  const { spec } = job;
  const perIndex = spec.backoffLimitPerIndex !== undefined;
  const allWaitMs = perIndex ? 0 : remainingMs(failures, nowMs);
  if (allWaitMs > 0) return { ...NO_PODS, waitMs: allWaitMs };
  const leaving = waitsForEnd(spec) ? pods.filter(isTerminating) : [];
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
