import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideJob } from '#engine/controllers/job/decide-job.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { ago, aJob, aPod, aWorld, NOW, NOW_MS } from '#engine/controllers/job/testing/job-world.ts';
import type { Change } from '#runtime/plan.ts';

interface Case {
  readonly world: JobWorld;
  /** `create 2`, `release a`, `delete a`, `patch a` in the order of the plan. */
  readonly want: string[];
  /** Only these fields are compared. */
  readonly status?: Record<string, unknown>;
  readonly events?: string[];
  readonly again?: number;
  /** Types of conditions that are True. */
  readonly trueConditions?: string[];
}

const holding = (type: string, reason = 'R', message = 'M') => ({ type, status: 'True', reason, message });
const failedBefore = (count: number, secondsAgo: number) => ({
  failed: Array.from({ length: count }, (_, i) => ({ uid: `u${i}`, atMs: NOW_MS - secondsAgo * 1000 })),
  lastSuccessMs: 0,
});
const indexed = { completionMode: 'Indexed', parallelism: 3, completions: 3 } as const;
const perIndex = { ...indexed, backoffLimitPerIndex: 1 };
const FAILURES = 'batch.kubernetes.io/job-index-failure-count';

const cases: Record<string, Case> = {
  'starts a new Job': {
    world: aWorld(aJob({}, { startTime: undefined })),
    want: ['create 1'],
    status: { startTime: NOW, active: undefined, ready: 0, terminating: 0, uncountedTerminatedPods: {} },
  },
  'creates as many pods as parallelism allows': {
    world: aWorld(aJob({ parallelism: 3, completions: 5 })),
    want: ['create 3'],
  },
  'creates no more pods than there are missing completions': {
    world: aWorld(aJob({ parallelism: 3, completions: 5 }, { succeeded: 4 })),
    want: ['create 1'],
  },
  'limits the number of pods per plan': {
    world: aWorld(aJob({ parallelism: 100, completions: 100 })),
    want: ['create 30'],
  },
  'keeps running pods': { world: aWorld(aJob(), [aPod('a')]), want: [], status: { active: 1 } },
  'counts the pods of a work queue by parallelism': {
    world: aWorld(aJob({ parallelism: 2, completions: undefined }), [aPod('a')]),
    want: ['create 1'],
  },
  'creates no more pods for a work queue after a success': {
    world: aWorld(aJob({ parallelism: 3, completions: undefined }, { succeeded: 1 }), [aPod('a')]),
    want: [],
  },
  'deletes the surplus pods with the least progress, after their finalizers': {
    world: aWorld(aJob({ parallelism: 1, completions: 5 }), [aPod('a'), aPod('b', { phase: 'Pending' })]),
    want: ['release b', 'delete b'],
    status: { active: 2, failed: undefined },
  },
  'continues a deletion that was interrupted after the finalizer was removed': {
    world: aWorld(aJob(), [aPod('a'), aPod('b', { counted: true })]),
    want: ['delete b'],
  },
  'records a success in the status before the finalizer is removed': {
    world: aWorld(aJob({ completions: 2 }), [aPod('a', { phase: 'Succeeded' })]),
    want: ['release a', 'create 1'],
    status: { succeeded: undefined, uncountedTerminatedPods: { succeeded: ['uid-a'] } },
  },
  'does not record a success twice if the removal of the finalizer failed': {
    world: aWorld(aJob({ completions: 2 }, { uncountedTerminatedPods: { succeeded: ['uid-a'] } }), [
      aPod('a', { phase: 'Succeeded' }),
      aPod('b'),
    ]),
    want: ['release a'],
    status: { succeeded: undefined, uncountedTerminatedPods: { succeeded: ['uid-a'] } },
  },
  'counts a success when the finalizer is removed': {
    world: aWorld(aJob({ completions: 2 }, { uncountedTerminatedPods: { succeeded: ['uid-a'] }, succeeded: 0 }), [
      aPod('a', { phase: 'Succeeded', counted: true }),
      aPod('b'),
    ]),
    want: [],
    status: { succeeded: 1, uncountedTerminatedPods: {} },
  },
  'counts a success when the pod is deleted': {
    world: aWorld(aJob({}, { uncountedTerminatedPods: { failed: ['uid-x'] }, failed: 1 }), [aPod('b')]),
    want: [],
    status: { failed: 2, uncountedTerminatedPods: {} },
  },
  'does not change a pod that was already counted': {
    world: aWorld(aJob({ completions: 2 }, { succeeded: 1 }), [
      aPod('a', { phase: 'Succeeded', counted: true }),
      aPod('b'),
    ]),
    want: [],
    status: { succeeded: 1 },
  },
  'counts a pod under deletion as failed': {
    world: aWorld(aJob(), [aPod('a', { deleting: true })]),
    want: ['release a', 'create 1'],
    status: { terminating: 1, uncountedTerminatedPods: { failed: ['uid-a'] } },
  },
  'waits for the end of a pod under deletion with podReplacementPolicy Failed': {
    world: aWorld(aJob({ podReplacementPolicy: 'Failed' }), [aPod('a', { deleting: true })]),
    want: [],
    status: { terminating: 1, uncountedTerminatedPods: {} },
  },
  'waits 10 s after a failure': {
    world: aWorld(aJob(), [], { failures: failedBefore(1, 4) }),
    want: [],
    again: 6000,
  },
  'waits longer after more failures': {
    world: aWorld(aJob(), [], { failures: failedBefore(3, 4) }),
    want: [],
    again: 36_000,
  },
  'creates a pod after the backoff': {
    world: aWorld(aJob(), [], { failures: failedBefore(1, 10) }),
    want: ['create 1'],
  },
  'records SuccessCriteriaMet before it completes': {
    world: aWorld(aJob(), [aPod('a', { phase: 'Succeeded' })]),
    want: ['release a'],
    trueConditions: ['SuccessCriteriaMet'],
    status: { completionTime: undefined, uncountedTerminatedPods: { succeeded: ['uid-a'] } },
    events: [],
  },
  'completes when all pods are counted': {
    world: aWorld(
      aJob({}, { conditions: [holding('SuccessCriteriaMet')], uncountedTerminatedPods: { succeeded: ['uid-a'] } }),
      [aPod('a', { phase: 'Succeeded', counted: true })],
    ),
    want: [],
    trueConditions: ['SuccessCriteriaMet', 'Complete'],
    status: { succeeded: 1, completionTime: NOW, uncountedTerminatedPods: {} },
    events: ['Normal Completed Job completed'],
  },
  'does not complete while a pod is terminating': {
    world: aWorld(aJob({}, { conditions: [holding('SuccessCriteriaMet')], succeeded: 1 }), [
      aPod('b', { deleting: true, counted: true }),
    ]),
    want: [],
    trueConditions: ['SuccessCriteriaMet'],
    events: [],
  },
  'completes at once with 0 completions': {
    world: aWorld(aJob({ completions: 0 })),
    want: [],
    trueConditions: ['SuccessCriteriaMet'],
  },
  'completes a work queue when the other pods have ended': {
    world: aWorld(aJob({ completions: undefined, parallelism: 2 }, { succeeded: 1, failed: 1 })),
    want: [],
    trueConditions: ['SuccessCriteriaMet'],
  },
  'reports if more pods succeeded than requested': {
    world: aWorld(aJob({}, { conditions: [holding('SuccessCriteriaMet')], succeeded: 2 })),
    want: [],
    events: [
      'Warning TooManySucceededPods Too many succeeded pods running after completion count reached',
      'Normal Completed Job completed',
    ],
  },
  'fails after the backoff limit and deletes the other pods': {
    world: aWorld(aJob({ parallelism: 2, completions: 2, backoffLimit: 0 }), [
      aPod('a', { phase: 'Failed' }),
      aPod('b'),
    ]),
    want: ['delete b', 'release a', 'release b'],
    trueConditions: ['FailureTarget'],
    status: { uncountedTerminatedPods: { failed: ['uid-a', 'uid-b'] } },
  },
  'is Failed when all pods are counted, regardless of later successes': {
    world: aWorld(aJob({}, { conditions: [holding('FailureTarget', 'DeadlineExceeded', 'too long')], succeeded: 1 })),
    want: [],
    trueConditions: ['FailureTarget', 'Failed'],
    status: { completionTime: undefined },
    events: ['Warning DeadlineExceeded too long'],
  },
  'deletes an active pod that is already recorded as failed': {
    world: aWorld(
      aJob({}, { conditions: [holding('FailureTarget')], uncountedTerminatedPods: { failed: ['uid-a'] } }),
      [aPod('a', { counted: true })],
    ),
    want: ['delete a'],
    status: { failed: 1 },
    trueConditions: ['FailureTarget'],
  },
  'fails at its deadline': {
    world: aWorld(aJob({ activeDeadlineSeconds: 60 }), [aPod('a')]),
    want: ['delete a', 'release a'],
    trueConditions: ['FailureTarget'],
  },
  'requeues at its deadline': {
    world: aWorld(aJob({ activeDeadlineSeconds: 90 }), [aPod('a')]),
    want: [],
    again: 30_000,
  },
  'starts the deadline again when resumed': {
    world: aWorld(aJob({ activeDeadlineSeconds: 90 }, { startTime: ago(600), conditions: [holding('Suspended')] })),
    want: ['create 1'],
    again: 90_000,
    status: { startTime: NOW },
    trueConditions: [],
    events: ['Normal Resumed Job resumed'],
  },
  'deletes all pods when suspended': {
    world: aWorld(aJob({ suspend: true, parallelism: 2, completions: 2 }), [aPod('a'), aPod('b')]),
    want: ['release a', 'release b', 'delete a', 'delete b'],
    trueConditions: ['Suspended'],
    events: ['Normal Suspended Job suspended'],
  },
  'has no deadline while suspended': {
    world: aWorld(aJob({ suspend: true, activeDeadlineSeconds: 1 })),
    want: [],
    trueConditions: ['Suspended'],
  },
  'releases all pods and creates none while under deletion': {
    world: aWorld(aJob({ parallelism: 2, completions: 2 }, {}, { deletionTimestamp: NOW }), [aPod('a')]),
    want: ['release a'],
    status: { uncountedTerminatedPods: {} },
  },
  'adopts an orphan before it counts it': {
    world: aWorld(aJob(), [], { orphans: [aPod('o', { counted: true })] }),
    want: ['patch o'],
  },
  'does not adopt an orphan under deletion': {
    world: aWorld(aJob(), [aPod('a')], { orphans: [aPod('o', { deleting: true })] }),
    want: [],
  },
  'creates the first missing indexes': {
    world: aWorld(aJob({ ...indexed, completions: 5 }, { completedIndexes: '0,2', succeeded: 2 }), [
      aPod('a', { index: 1 }),
    ]),
    want: ['create 2'],
    status: { completedIndexes: '0,2', succeeded: 2 },
  },
  'records the index of a succeeded pod at once': {
    world: aWorld(aJob(indexed, { completedIndexes: '0', succeeded: 1 }), [
      aPod('a', { index: 2, phase: 'Succeeded' }),
      aPod('b', { index: 1 }),
    ]),
    want: ['release a'],
    status: { completedIndexes: '0,2', succeeded: 2, uncountedTerminatedPods: {} },
  },
  'deletes a second pod of an index and a pod without an index': {
    world: aWorld(aJob(indexed), [
      aPod('a', { index: 0 }),
      aPod('b', { index: 0, phase: 'Pending' }),
      aPod('c', { index: 9 }),
    ]),
    want: ['release b', 'release c', 'delete b', 'delete c'],
  },
  'keeps the last failed pod of an index until its replacement exists': {
    world: aWorld(aJob({ ...perIndex, completions: 1, parallelism: 1 }), [
      aPod('a', { index: 0, phase: 'Failed', annotations: { [FAILURES]: '0' }, endedAgo: 3 }),
    ]),
    want: [],
    again: 7000,
    status: { failedIndexes: '', uncountedTerminatedPods: {} },
  },
  'releases the failed pod once its replacement exists': {
    world: aWorld(aJob({ ...perIndex, completions: 1, parallelism: 1 }), [
      aPod('a', { index: 0, phase: 'Failed', annotations: { [FAILURES]: '0' } }),
      aPod('b', { index: 0, annotations: { [FAILURES]: '1' } }),
    ]),
    want: ['release a'],
    status: { uncountedTerminatedPods: { failed: ['uid-a'] } },
  },
  'gives up an index after its limit': {
    world: aWorld(aJob(perIndex), [
      aPod('a', { index: 0, phase: 'Failed', annotations: { [FAILURES]: '1' } }),
      aPod('b', { index: 1 }),
      aPod('c', { index: 2 }),
    ]),
    want: ['release a'],
    status: { failedIndexes: '0' },
    trueConditions: [],
  },
  'fails if more indexes failed than allowed': {
    world: aWorld(aJob({ ...perIndex, maxFailedIndexes: 0 }, { failedIndexes: '0' }), [aPod('b', { index: 1 })]),
    want: ['delete b', 'release b'],
    trueConditions: ['FailureTarget'],
  },
  'meets a success policy and does not count the other pods as failed': {
    world: aWorld(aJob({ ...indexed, successPolicy: { rules: [{ succeededIndexes: '0-1', succeededCount: 1 }] } }), [
      aPod('a', { index: 0, phase: 'Succeeded' }),
      aPod('b', { index: 1 }),
    ]),
    want: ['delete b', 'release a', 'release b'],
    trueConditions: ['SuccessCriteriaMet'],
    status: { completedIndexes: '0', uncountedTerminatedPods: {} },
  },
};

for (const [name, { world, want, status, events, again, trueConditions }] of Object.entries(cases)) {
  test(`a Job ${name}`, () => {
    const plan = decideJob(world);
    assert.deepEqual(describeChanges(plan.changes), want);
    assert.equal(plan.requeueAfterMs, again);
    for (const [field, value] of Object.entries(status ?? {})) assert.deepEqual(plan.status?.[field], value, field);
    if (events !== undefined) {
      assert.deepEqual(
        plan.events?.map(({ type, reason, message }) => `${type} ${reason} ${message}`),
        events,
      );
    }
    if (trueConditions !== undefined) {
      const conditions = (plan.status?.['conditions'] ?? []) as { type: string; status: string }[];
      const found = conditions.filter((condition) => condition.status === 'True').map(({ type }) => type);
      assert.deepEqual(found, trueConditions);
    }
  });
}

function describeChanges(changes: readonly Change[]): string[] {
  const creates = changes.filter((change) => change.do === 'create').length;
  const others = changes.flatMap((change) => {
    if (change.do === 'create') return [];
    const strategic = change.do === 'patch' && change.patch.type === 'strategic';
    return [`${strategic ? 'release' : change.do} ${change.name.name}`];
  });
  return creates > 0 ? [...others, `create ${creates}`] : others;
}

test('names the same pods for the same state, and other pods for a later state', () => {
  const names = (world: JobWorld) =>
    decideJob(world).changes.flatMap((change) => (change.do === 'create' ? [change.object.metadata.name] : []));
  const job = aJob({ parallelism: 2, completions: 5 });
  const first = names(aWorld(job));
  assert.equal(new Set(first).size, 2);
  assert.deepEqual(names(aWorld(job)), first);
  // The cache contains one of them, but not the other yet.
  assert.deepEqual(names(aWorld(job, [aPod(first[0]!)])), [first[1]]);
  const later = names(aWorld(aJob({ parallelism: 2, completions: 5 }, { succeeded: 2 })));
  assert.deepEqual(
    later.filter((name) => first.includes(name)),
    [],
  );
  const other = names(aWorld(aJob({ parallelism: 2, completions: 5 }, {}, { uid: 'another' })));
  assert.notDeepEqual(other, first);
});
