import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownerReference } from '#engine/controllers/job/build-pod.ts';
import { aJob, aPod, type PodOptions } from '#engine/controllers/job/testing/job-world.ts';
import { type BatchJob } from '#engine/controllers/job/kinds.ts';
import { decideStray } from '#engine/controllers/job/stray-pods.ts';
import type { OwnerReference, Stored } from '#kube/meta.ts';

const running = aJob();
const finished = aJob({}, { conditions: [{ type: 'Complete', status: 'True' }] });
const managedElsewhere = aJob({ managedBy: 'example.com/x' }, finished.status);
const other: OwnerReference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true };

const cases: Record<
  string,
  [owner: OwnerReference | undefined, job: Stored<BatchJob> | undefined, PodOptions, string[]]
> = {
  'is kept while its Job runs': [ownerReference(running), running, {}, []],
  'is released if it has no controller': [undefined, undefined, {}, ['patch']],
  'is released if its Job does not exist': [ownerReference(running), undefined, {}, ['patch']],
  'is released if its Job has finished': [ownerReference(finished), finished, { phase: 'Succeeded' }, ['patch']],
  'is released and deleted if it is active and its Job has finished': [
    ownerReference(finished),
    finished,
    {},
    ['patch', 'delete'],
  ],
  'is kept if another controller manages its Job': [ownerReference(managedElsewhere), managedElsewhere, {}, []],
  'is kept if it has another controller': [other, undefined, {}, []],
};
for (const [name, [owner, job, options, want]] of Object.entries(cases)) {
  test(`a pod with the finalizer ${name}`, () => {
    const pod = aPod('a', options);
    if (owner !== undefined) pod.metadata.ownerReferences = [owner];
    assert.deepEqual(
      decideStray({ pod, job }).changes.map((change) => change.do),
      want,
    );
  });
}
