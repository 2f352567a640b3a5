import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownerReference } from '#engine/controllers/job/build-pod.ts';
import { adoptOrphans, releaseUnselected, removeStrayTracking, wouldAdopt } from '#engine/controllers/job/adoption.ts';
import { aJob, aPod, aWorld } from '#engine/controllers/job/testing/job-world.ts';
import { TRACKING_FINALIZER } from '#engine/controllers/job/kinds.ts';
import type { Change } from '#runtime/plan.ts';

const deletingJob = aJob({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' });

const cases: Record<string, { job?: ReturnType<typeof aJob>; pod: ReturnType<typeof aPod>; adopts: boolean }> = {
  'adopts a pod that it selects': { pod: aPod('a'), adopts: true },
  'adopts nothing while it is being deleted': { job: deletingJob, pod: aPod('a'), adopts: false },
  'does not adopt a pod under deletion': { pod: aPod('a', { deleting: true }), adopts: false },
};
for (const [name, { job = aJob(), pod, adopts }] of Object.entries(cases)) {
  test(`a Job ${name}`, () => {
    assert.equal(adoptOrphans(aWorld(job, [], { orphans: [pod] })).length, adopts ? 1 : 0);
    assert.equal(wouldAdopt(job, [pod]), adopts);
  });
}

/** Lists are replaced as a whole, so the patch must contain the resourceVersion. */
function metadataOf([change]: Change[]): unknown {
  assert.ok(change?.do === 'patch');
  return (change.patch.body as { metadata: unknown }).metadata;
}

test('changes of ownership apply to the observed version of a pod only', () => {
  const job = aJob();
  const unselected = aPod('b');
  unselected.metadata.labels = {};
  unselected.metadata.ownerReferences = [ownerReference(job)];
  const tracked = [TRACKING_FINALIZER];
  assert.deepEqual(metadataOf(adoptOrphans(aWorld(job, [], { orphans: [aPod('a', { counted: true })] }))), {
    ownerReferences: [ownerReference(job)],
    finalizers: tracked,
    resourceVersion: '1',
  });
  assert.deepEqual(metadataOf(releaseUnselected(aWorld(job, [unselected]))), {
    ownerReferences: [],
    finalizers: [],
    resourceVersion: '1',
  });
  assert.deepEqual(metadataOf(removeStrayTracking(aPod('c'), 'x')), { finalizers: [], resourceVersion: '1' });
});
