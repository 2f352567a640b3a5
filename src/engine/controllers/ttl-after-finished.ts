/** Deletes Jobs that have finished, when their spec.ttlSecondsAfterFinished is over, and with them their pods. */
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { type Job, JOBS } from '#engine/controllers/job/kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface FinishedJobWorld {
  readonly job: Stored<Job>;
  readonly nowMs: number;
}

/** Pure. */
export function decideExpiry({ job, nowMs }: FinishedJobWorld): Plan {
  const { metadata, spec } = job;
  const finishedMs = finishedAtMs(job);
  if (metadata.deletionTimestamp !== undefined || spec.ttlSecondsAfterFinished === undefined) return NOTHING;
  if (finishedMs === undefined) return NOTHING;
  const leftMs = finishedMs + spec.ttlSecondsAfterFinished * 1000 - nowMs;
  if (leftMs > 0) return { changes: [], requeueAfterMs: leftMs };
  const { namespace, name, uid, resourceVersion } = metadata;
  return {
    changes: [
      {
        do: 'delete',
        type: JOBS,
        name: { namespace, name },
        uid,
        // The time may have been changed since we looked.
        resourceVersion,
        propagationPolicy: 'Foreground',
        why: 'the Job finished long enough ago',
      },
    ],
  };
}

function finishedAtMs({ status }: Job): number | undefined {
  const end = status?.conditions?.find(
    ({ type, status: holds }) => (type === 'Complete' || type === 'Failed') && holds === 'True',
  );
  return end?.lastTransitionTime === undefined ? undefined : Date.parse(end.lastTransitionTime);
}

export const ttlAfterFinishedController: EngineController = {
  account: 'ttl-after-finished-controller',
  start(parts) {
    const jobs = parts.informer(JOBS);
    const definition = defineController<FinishedJobWorld>({
      name: 'ttl-after-finished-controller',
      type: JOBS,
      sources: [source(jobs)],
      observe(key) {
        const job = jobs.get(key);
        return job && { job, nowMs: parts.clock.now() };
      },
      decide: decideExpiry,
      // The Events of a Job go with it.
      subject: () => undefined,
    });
    return startController(definition, parts);
  },
};
