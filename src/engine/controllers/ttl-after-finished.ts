/** Deletes finished Jobs and their pods after spec.ttlSecondsAfterFinished. */
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { type BatchJob, BATCH_JOBS } from '#engine/controllers/job/kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface FinishedJobWorld {
  readonly job: Stored<BatchJob>;
  readonly nowMs: number;
}

/** Decides whether a Job is deleted now or later. Pure. */
export function decideExpiry({ job, nowMs }: FinishedJobWorld): Plan {
  const { metadata, spec } = job;
  const finishedMs = jobFinishedAtMs(job);
  if (metadata.deletionTimestamp !== undefined || spec.ttlSecondsAfterFinished === undefined) return EMPTY_PLAN;
  if (finishedMs === undefined) return EMPTY_PLAN;
  const leftMs = finishedMs + spec.ttlSecondsAfterFinished * 1000 - nowMs;
  if (leftMs > 0) return { changes: [], requeueAfterMs: leftMs };
  const { namespace, name, uid, resourceVersion } = metadata;
  return {
    changes: [
      {
        do: 'delete',
        type: BATCH_JOBS,
        name: { namespace, name },
        uid,
        // The delete must fail if ttlSecondsAfterFinished was changed in the meantime.
        resourceVersion,
        propagationPolicy: 'Foreground',
        why: 'the TTL of the finished Job has expired',
      },
    ],
  };
}

function jobFinishedAtMs({ status }: BatchJob): number | undefined {
  const end = status?.conditions?.find(
    ({ type, status: holds }) => (type === 'Complete' || type === 'Failed') && holds === 'True',
  );
  return end?.lastTransitionTime === undefined ? undefined : Date.parse(end.lastTransitionTime);
}

export const ttlAfterFinishedController: EngineController = {
  account: 'ttl-after-finished-controller',
  start(parts) {
    const jobs = parts.informer(BATCH_JOBS);
    const definition = defineController<FinishedJobWorld>({
      name: 'ttl-after-finished-controller',
      type: BATCH_JOBS,
      sources: [source(jobs)],
      observe(key) {
        const job = jobs.get(key);
        return job && { job, nowMs: parts.clock.now() };
      },
      decide: decideExpiry,
      // No Event: the Job is deleted.
      subject: () => undefined,
    });
    return startController(definition, parts);
  },
};
