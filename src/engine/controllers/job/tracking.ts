/** Decides which ended pods are recorded in the status and lose their finalizer. tally.ts describes all steps. */
import type { JobEnding } from '#engine/controllers/job/ending.ts';
import { countsAsFailure } from '#engine/controllers/job/failure-policy.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { isIndexed } from '#engine/controllers/job/kinds.ts';
import { hasFailed, hasSucceeded, isTracked } from '#engine/controllers/job/pod-state.ts';
import { type UncountedPods, isValid, type Tally } from '#engine/controllers/job/tally.ts';
import type { Stored } from '#kube/meta.ts';

/** The maximum number of finalizers that one plan removes. */
const MAX_RELEASED = 40;

interface Tracking {
  /** Pods whose finalizers are removed after the status is written. */
  readonly release: readonly Stored<EnginePod>[];
  readonly uncounted: UncountedPods;
}

interface TrackingParts {
  readonly ending: JobEnding | undefined;
  /** Failed pods whose index is to be tried again. They are kept until the new pod has their failure count. */
  readonly keptForRetry: ReadonlySet<EnginePod>;
  /** Active pods of a Job that ends. The same plan deletes them. */
  readonly deleted: ReadonlySet<EnginePod>;
}

export function decideTracking(world: JobWorld, tally: Tally, parts: TrackingParts): Tracking {
  const { job, pods } = world;
  const { spec } = job;
  const succeeded = new Set(tally.uncounted.succeeded);
  const failed = new Set(tally.uncounted.failed);
  const release: Stored<EnginePod>[] = [];
  for (const pod of pods) {
    if (release.length >= MAX_RELEASED) break;
    if (!isTracked(pod) || !mayRelease(world, pod, parts)) continue;
    release.push(pod);
    const { uid } = pod.metadata;
    if (succeeded.has(uid) || failed.has(uid) || !isValid(pod, spec)) continue;
    if (hasSucceeded(pod)) {
      if (!isIndexed(spec)) succeeded.add(uid);
    } else if (hasFailed(pod, spec) || parts.ending?.type === 'FailureTarget') {
      if (countsAsFailure(spec.podFailurePolicy, pod)) failed.add(uid);
    }
  }
  return { release, uncounted: { succeeded: [...succeeded], failed: [...failed] } };
}

function mayRelease({ job }: JobWorld, pod: EnginePod, { ending, keptForRetry, deleted }: TrackingParts): boolean {
  if (job.metadata.deletionTimestamp !== undefined || hasSucceeded(pod)) return true;
  const failed = hasFailed(pod, job.spec);
  // Active pods lose their finalizer only if they are being deleted. A later plan deletes the others.
  if (ending !== undefined) return failed || deleted.has(pod) || pod.metadata.deletionTimestamp !== undefined;
  return failed && !keptForRetry.has(pod);
}
