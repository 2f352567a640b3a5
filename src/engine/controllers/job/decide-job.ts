/**
 * Decides the next step for one Job that has not finished. Pure.
 *
 * The status is written first, with the uids of ended pods; their finalizers are removed afterwards. A surplus pod loses
 * its finalizer before it is deleted, so that it does not count as failed. The pods of a Job that ends are deleted first,
 * and count as failed if the Job fails.
 */
import { buildPod, type NewPod } from '#engine/controllers/job/build-pod.ts';
import { adoptOrphans, releaseUnselected, removeTracking } from '#engine/controllers/job/adoption.ts';
import { decidePods, MAX_PODS, NO_PODS } from '#engine/controllers/job/decide-pods.ts';
import { deadlineMs, decideEnding } from '#engine/controllers/job/ending.ts';
import { lastFailedPods } from '#engine/controllers/job/index-failures.ts';
import { decideStatus } from '#engine/controllers/job/job-status.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { isTracked } from '#engine/controllers/job/pod-state.ts';
import { tallyPods } from '#engine/controllers/job/tally.ts';
import { decideTracking } from '#engine/controllers/job/tracking.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export function decideJob(world: JobWorld): Plan {
  const ownerChanges = [...releaseUnselected(world), ...adoptOrphans(world)];
  // Ownership is written first, because everything else counts the owned pods.
  if (ownerChanges.length > 0) return { changes: ownerChanges };
  const tally = tallyPods(world);
  const ending = decideEnding(world, tally);
  const replaced = lastFailedPods(world, tally);
  const pods = ending === undefined ? decidePods(world, tally, replaced) : NO_PODS;
  const toDelete = ending === undefined ? [] : tally.active.slice(0, MAX_PODS);
  const kept = new Set(replaced.values());
  const { release: released, uncounted } = decideTracking(world, tally, {
    ending,
    keptForRetry: kept,
    deleted: new Set(toDelete),
  });
  const { status, events } = decideStatus(world, { tally, ending, uncounted });
  const waitMs = ending === undefined ? Math.min(deadlineMs(world), pods.waitMs ?? Infinity) : Infinity;
  return {
    status,
    events,
    changes: [
      ...toDelete.map(deletePod),
      ...released.map((pod) => removeTracking(pod, 'the pod is recorded in the status of its Job')),
      ...pods.remove
        .filter(isTracked)
        .map((pod) => removeTracking(pod, 'the pod is deleted and must not count as failed')),
      ...pods.remove.map(deletePod),
      ...pods.create.map((pod) => createPod(world, pod)),
    ],
    ...(waitMs < Infinity ? { requeueAfterMs: waitMs } : {}),
  };
}

function createPod({ job }: JobWorld, pod: NewPod): Change {
  return { do: 'create', type: ENGINE_PODS, object: buildPod(job, pod), why: `Created pod: ${pod.name}` };
}

export function deletePod({ metadata: { namespace, name, uid } }: Stored<EnginePod>): Change {
  return { do: 'delete', type: ENGINE_PODS, name: { namespace, name }, uid, why: `Deleted pod: ${name}` };
}
