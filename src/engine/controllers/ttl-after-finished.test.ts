import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, aJob, NOW, NOW_MS } from '#engine/controllers/job/job-world.fixture.ts';
import type { Job } from '#engine/controllers/job/kinds.ts';
import { decideExpiry } from '#engine/controllers/ttl-after-finished.ts';
import type { Stored } from '#kube/meta.ts';
import type { Plan } from '#runtime/plan.ts';

const finished = (type: string, seconds: number): Job['status'] => ({
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
      why: 'the Job finished long enough ago',
    },
  ],
};
const nothing: Plan = { changes: [] };

const cases: Record<string, [job: Stored<Job>, want: Plan]> = {
  'a Job that runs stays': [aJob({ ttlSecondsAfterFinished: 0 }), nothing],
  'a Job without a time stays for ever': [aJob({}, finished('Complete', 9999)), nothing],
  'a complete Job goes when its time is over': [
    aJob({ ttlSecondsAfterFinished: 60 }, finished('Complete', 60)),
    deletion,
  ],
  'a failed Job goes as well': [aJob({ ttlSecondsAfterFinished: 60 }, finished('Failed', 61)), deletion],
  'no time at all is over at once': [aJob({ ttlSecondsAfterFinished: 0 }, finished('Failed', 0)), deletion],
  'what is left of the time is waited for': [
    aJob({ ttlSecondsAfterFinished: 60 }, finished('Complete', 45)),
    { changes: [], requeueAfterMs: 15_000 },
  ],
  'a Job that is only about to fail stays': [
    aJob({ ttlSecondsAfterFinished: 0 }, finished('FailureTarget', 9)),
    nothing,
  ],
  'a Job under deletion is left alone': [
    aJob({ ttlSecondsAfterFinished: 0 }, finished('Complete', 9), { deletionTimestamp: NOW }),
    nothing,
  ],
};
for (const [name, [job, want]] of Object.entries(cases)) {
  test(`ttl: ${name}`, () => assert.deepEqual(decideExpiry({ job, nowMs: NOW_MS }), want));
}
