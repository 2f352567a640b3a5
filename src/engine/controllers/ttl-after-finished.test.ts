import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, aJob, NOW, NOW_MS } from '#engine/controllers/job/testing/job-world.ts';
import type { BatchJob } from '#engine/controllers/job/kinds.ts';
import { decideExpiry } from '#engine/controllers/ttl-after-finished.ts';
import type { Stored } from '#kube/meta.ts';
import type { Plan } from '#runtime/plan.ts';

const finished = (type: string, seconds: number): BatchJob['status'] => ({
  conditions: [{ type, status: 'True', lastTransitionTime: ago(seconds) }],
});
const deletion: Plan = {
  changes: [
    {
      do: 'delete',
      type: { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true },
      name: { namespace: 'ns', name: 'work' },
      uid: 'job-uid',
      resourceVersion: '1',
      propagationPolicy: 'Foreground',
      why: 'the TTL of the finished Job has expired',
    },
  ],
};
const nothing: Plan = { changes: [] };

const cases: Record<string, [job: Stored<BatchJob>, want: Plan]> = {
  'keeps a running Job': [aJob({ ttlSecondsAfterFinished: 0 }), nothing],
  'keeps a finished Job without a TTL': [aJob({}, finished('Complete', 9999)), nothing],
  'deletes a complete Job when its TTL expires': [
    aJob({ ttlSecondsAfterFinished: 60 }, finished('Complete', 60)),
    deletion,
  ],
  'deletes a failed Job when its TTL expires': [
    aJob({ ttlSecondsAfterFinished: 60 }, finished('Failed', 61)),
    deletion,
  ],
  'deletes a finished Job with a TTL of 0 at once': [
    aJob({ ttlSecondsAfterFinished: 0 }, finished('Failed', 0)),
    deletion,
  ],
  'requeues for the rest of the TTL': [
    aJob({ ttlSecondsAfterFinished: 60 }, finished('Complete', 45)),
    { changes: [], requeueAfterMs: 15_000 },
  ],
  'keeps a Job with condition FailureTarget': [
    aJob({ ttlSecondsAfterFinished: 0 }, finished('FailureTarget', 9)),
    nothing,
  ],
  'does not change a Job under deletion': [
    aJob({ ttlSecondsAfterFinished: 0 }, finished('Complete', 9), { deletionTimestamp: NOW }),
    nothing,
  ],
};
for (const [name, [job, want]] of Object.entries(cases)) {
  test(`ttl: ${name}`, () => assert.deepEqual(decideExpiry({ job, nowMs: NOW_MS }), want));
}
