import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownerReference } from '#engine/controllers/job/build-pod.ts';
import { adoptOrphans, releaseUnselected, removeStrayTracking, wouldAdopt } from '#engine/controllers/job/adoption.ts';
import { aJob, aPod, aWorld } from '#engine/controllers/job/job-world.fixture.ts';
import { TRACKING_FINALIZER } from '#engine/controllers/job/kinds.ts';
import type { Change } from '#runtime/plan.ts';

const deletingJob = aJob({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' });

const cases: Record<string, { job?: ReturnType<typeof aJob>; pod: ReturnType<typeof aPod>; adopts: boolean }> = {
  'takes over a pod that it selects': { pod: aPod('a'), adopts: true },
  'takes over nothing while it is being deleted': { job: deletingJob, pod: aPod('a'), adopts: false },
  'leaves a pod that is being deleted': { pod: aPod('a', { deleting: true }), adopts: false },
};
for (const [name, { job = aJob(), pod, adopts }] of Object.entries(cases)) {
  test(`a Job ${name}`, () => {
    assert.equal(adoptOrphans(aWorld(job, [], { orphans: [pod] })).length, adopts ? 1 : 0);
    assert.equal(wouldAdopt(job, [pod]), adopts);
  });
}

/** The lists are written whole: who has changed them meanwhile must not lose what they wrote. */
function metadataOf([change]: Change[]): unknown {
  assert.ok(change?.do === 'patch');
  return (change.patch.body as { metadata: unknown }).metadata;
}

test('claims hold for the pod only as it was seen', () => {
  const job = aJob();
  const stranger = aPod('b');
  stranger.metadata.labels = {};
  stranger.metadata.ownerReferences = [ownerReference(job)];
  const tracked = [TRACKING_FINALIZER];
  assert.deepEqual(metadataOf(adoptOrphans(aWorld(job, [], { orphans: [aPod('a', { counted: true })] }))), {
    ownerReferences: [ownerReference(job)],
    finalizers: tracked,
    resourceVersion: '1',
  });
  assert.deepEqual(metadataOf(releaseUnselected(aWorld(job, [stranger]))), {
    ownerReferences: [],
    finalizers: [],
    resourceVersion: '1',
  });
  assert.deepEqual(metadataOf(removeStrayTracking(aPod('c'), 'x')), { finalizers: [], resourceVersion: '1' });
});
