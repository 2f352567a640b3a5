import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideJob } from '#engine/controllers/job/decide-job.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { ago, aJob, aPod, aWorld, NOW, NOW_MS } from '#engine/controllers/job/job-world.fixture.ts';
import type { Change } from '#runtime/plan.ts';

interface Case {
  readonly world: JobWorld;
  /** `create 2`, `release a`, `delete a`, `patch a` in the order of the plan. */
  readonly want: string[];
  /** Only these fields are looked at. */
  readonly status?: Record<string, unknown>;
  readonly events?: string[];
  readonly again?: number;
  /** Types of conditions that are True. */
  readonly standing?: string[];
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
  'makes as many as run at once': { world: aWorld(aJob({ parallelism: 3, completions: 5 })), want: ['create 3'] },
  'makes no more than completions are missing': {
    world: aWorld(aJob({ parallelism: 3, completions: 5 }, { succeeded: 4 })),
    want: ['create 1'],
  },
  'does only a part of many at once': {
    world: aWorld(aJob({ parallelism: 100, completions: 100 })),
    want: ['create 30'],
  },
  'leaves running pods alone': { world: aWorld(aJob(), [aPod('a')]), want: [], status: { active: 1 } },
  'counts the pods of a work queue by parallelism': {
    world: aWorld(aJob({ parallelism: 2, completions: undefined }), [aPod('a')]),
    want: ['create 1'],
  },
  'makes no more for a work queue that has seen a success': {
    world: aWorld(aJob({ parallelism: 3, completions: undefined }, { succeeded: 1 }), [aPod('a')]),
    want: [],
  },
  'takes away those too many that have come least far, finalizer first': {
    world: aWorld(aJob({ parallelism: 1, completions: 5 }), [aPod('a'), aPod('b', { phase: 'Pending' })]),
    want: ['release b', 'delete b'],
    status: { active: 2, failed: undefined },
  },
  'finishes a deletion that was cut after the finalizer went': {
    world: aWorld(aJob(), [aPod('a'), aPod('b', { counted: true })]),
    want: ['delete b'],
  },
  'writes a success into the books before its finalizer goes': {
    world: aWorld(aJob({ completions: 2 }), [aPod('a', { phase: 'Succeeded' })]),
    want: ['release a', 'create 1'],
    status: { succeeded: undefined, uncountedTerminatedPods: { succeeded: ['uid-a'] } },
  },
  'does not write it twice when the removal of the finalizer failed': {
    world: aWorld(aJob({ completions: 2 }, { uncountedTerminatedPods: { succeeded: ['uid-a'] } }), [
      aPod('a', { phase: 'Succeeded' }),
      aPod('b'),
    ]),
    want: ['release a'],
    status: { succeeded: undefined, uncountedTerminatedPods: { succeeded: ['uid-a'] } },
  },
  'counts it when the finalizer is gone': {
    world: aWorld(aJob({ completions: 2 }, { uncountedTerminatedPods: { succeeded: ['uid-a'] }, succeeded: 0 }), [
      aPod('a', { phase: 'Succeeded', counted: true }),
      aPod('b'),
    ]),
    want: [],
    status: { succeeded: 1, uncountedTerminatedPods: {} },
  },
  'counts it when the whole pod is gone': {
    world: aWorld(aJob({}, { uncountedTerminatedPods: { failed: ['uid-x'] }, failed: 1 }), [aPod('b')]),
    want: [],
    status: { failed: 2, uncountedTerminatedPods: {} },
  },
  'leaves a pod that was counted before alone': {
    world: aWorld(aJob({ completions: 2 }, { succeeded: 1 }), [
      aPod('a', { phase: 'Succeeded', counted: true }),
      aPod('b'),
    ]),
    want: [],
    status: { succeeded: 1 },
  },
  'takes a deleted pod for failed': {
    world: aWorld(aJob(), [aPod('a', { deleting: true })]),
    want: ['release a', 'create 1'],
    status: { terminating: 1, uncountedTerminatedPods: { failed: ['uid-a'] } },
  },
  'waits for the end of a deleted pod where it is told to': {
    world: aWorld(aJob({ podReplacementPolicy: 'Failed' }), [aPod('a', { deleting: true })]),
    want: [],
    status: { terminating: 1, uncountedTerminatedPods: {} },
  },
  'waits 10 s after a failure': {
    world: aWorld(aJob(), [], { failures: failedBefore(1, 4) }),
    want: [],
    again: 6000,
  },
  'waits longer after more of them': {
    world: aWorld(aJob(), [], { failures: failedBefore(3, 4) }),
    want: [],
    again: 36_000,
  },
  'goes on after the wait': { world: aWorld(aJob(), [], { failures: failedBefore(1, 10) }), want: ['create 1'] },
  'says first that the criteria are met': {
    world: aWorld(aJob(), [aPod('a', { phase: 'Succeeded' })]),
    want: ['release a'],
    standing: ['SuccessCriteriaMet'],
    status: { completionTime: undefined, uncountedTerminatedPods: { succeeded: ['uid-a'] } },
    events: [],
  },
  'completes when everything is counted': {
    world: aWorld(
      aJob({}, { conditions: [holding('SuccessCriteriaMet')], uncountedTerminatedPods: { succeeded: ['uid-a'] } }),
      [aPod('a', { phase: 'Succeeded', counted: true })],
    ),
    want: [],
    standing: ['SuccessCriteriaMet', 'Complete'],
    status: { succeeded: 1, completionTime: NOW, uncountedTerminatedPods: {} },
    events: ['Normal Completed Job completed'],
  },
  'does not complete while a pod is on its way out': {
    world: aWorld(aJob({}, { conditions: [holding('SuccessCriteriaMet')], succeeded: 1 }), [
      aPod('b', { deleting: true, counted: true }),
    ]),
    want: [],
    standing: ['SuccessCriteriaMet'],
    events: [],
  },
  'completes at once where nothing is wanted': {
    world: aWorld(aJob({ completions: 0 })),
    want: [],
    standing: ['SuccessCriteriaMet'],
  },
  'completes a work queue when the others have ended': {
    world: aWorld(aJob({ completions: undefined, parallelism: 2 }, { succeeded: 1, failed: 1 })),
    want: [],
    standing: ['SuccessCriteriaMet'],
  },
  'says it when more succeeded than wanted': {
    world: aWorld(aJob({}, { conditions: [holding('SuccessCriteriaMet')], succeeded: 2 })),
    want: [],
    events: [
      'Warning TooManySucceededPods Too many succeeded pods running after completion count reached',
      'Normal Completed Job completed',
    ],
  },
  'fails past the backoff limit, and takes the others with it': {
    world: aWorld(aJob({ parallelism: 2, completions: 2, backoffLimit: 0 }), [
      aPod('a', { phase: 'Failed' }),
      aPod('b'),
    ]),
    want: ['delete b', 'release a', 'release b'],
    standing: ['FailureTarget'],
    status: { uncountedTerminatedPods: { failed: ['uid-a', 'uid-b'] } },
  },
  'is at its end when all is counted, whatever happened since': {
    world: aWorld(aJob({}, { conditions: [holding('FailureTarget', 'DeadlineExceeded', 'too long')], succeeded: 1 })),
    want: [],
    standing: ['FailureTarget', 'Failed'],
    status: { completionTime: undefined },
    events: ['Warning DeadlineExceeded too long'],
  },
  'deletes a pod that is still active although it is in the books as failed': {
    world: aWorld(
      aJob({}, { conditions: [holding('FailureTarget')], uncountedTerminatedPods: { failed: ['uid-a'] } }),
      [aPod('a', { counted: true })],
    ),
    want: ['delete a'],
    status: { failed: 1 },
    standing: ['FailureTarget'],
  },
  'fails at its deadline': {
    world: aWorld(aJob({ activeDeadlineSeconds: 60 }), [aPod('a')]),
    want: ['delete a', 'release a'],
    standing: ['FailureTarget'],
  },
  'looks again at its deadline': {
    world: aWorld(aJob({ activeDeadlineSeconds: 90 }), [aPod('a')]),
    want: [],
    again: 30_000,
  },
  'counts the deadline from now on when resumed': {
    world: aWorld(aJob({ activeDeadlineSeconds: 90 }, { startTime: ago(600), conditions: [holding('Suspended')] })),
    want: ['create 1'],
    again: 90_000,
    status: { startTime: NOW },
    standing: [],
    events: ['Normal Resumed Job resumed'],
  },
  'takes all pods of a suspended Job away': {
    world: aWorld(aJob({ suspend: true, parallelism: 2, completions: 2 }), [aPod('a'), aPod('b')]),
    want: ['release a', 'release b', 'delete a', 'delete b'],
    standing: ['Suspended'],
    events: ['Normal Suspended Job suspended'],
  },
  'has no deadline while suspended': {
    world: aWorld(aJob({ suspend: true, activeDeadlineSeconds: 1 })),
    want: [],
    standing: ['Suspended'],
  },
  'lets go of all pods of a Job under deletion, and makes none': {
    world: aWorld(aJob({ parallelism: 2, completions: 2 }, {}, { deletionTimestamp: NOW }), [aPod('a')]),
    want: ['release a'],
    status: { uncountedTerminatedPods: {} },
  },
  'takes over a pod of nobody, and counts it only then': {
    world: aWorld(aJob(), [], { orphans: [aPod('o', { counted: true })] }),
    want: ['patch o'],
  },
  'leaves a pod of nobody that is on its way out': {
    world: aWorld(aJob(), [aPod('a')], { orphans: [aPod('o', { deleting: true })] }),
    want: [],
  },
  'makes the first missing indexes': {
    world: aWorld(aJob({ ...indexed, completions: 5 }, { completedIndexes: '0,2', succeeded: 2 }), [
      aPod('a', { index: 1 }),
    ]),
    want: ['create 2'],
    status: { completedIndexes: '0,2', succeeded: 2 },
  },
  'knows an index by its pod, and writes it at once': {
    world: aWorld(aJob(indexed, { completedIndexes: '0', succeeded: 1 }), [
      aPod('a', { index: 2, phase: 'Succeeded' }),
      aPod('b', { index: 1 }),
    ]),
    want: ['release a'],
    status: { completedIndexes: '0,2', succeeded: 2, uncountedTerminatedPods: {} },
  },
  'takes one of two pods of an index away, and one without index': {
    world: aWorld(aJob(indexed), [
      aPod('a', { index: 0 }),
      aPod('b', { index: 0, phase: 'Pending' }),
      aPod('c', { index: 9 }),
    ]),
    want: ['release b', 'release c', 'delete b', 'delete c'],
  },
  'keeps the last failed pod of an index until its successor is there': {
    world: aWorld(aJob({ ...perIndex, completions: 1, parallelism: 1 }), [
      aPod('a', { index: 0, phase: 'Failed', annotations: { [FAILURES]: '0' }, endedAgo: 3 }),
    ]),
    want: [],
    again: 7000,
    status: { failedIndexes: '', uncountedTerminatedPods: {} },
  },
  'lets it go then': {
    world: aWorld(aJob({ ...perIndex, completions: 1, parallelism: 1 }), [
      aPod('a', { index: 0, phase: 'Failed', annotations: { [FAILURES]: '0' } }),
      aPod('b', { index: 0, annotations: { [FAILURES]: '1' } }),
    ]),
    want: ['release a'],
    status: { uncountedTerminatedPods: { failed: ['uid-a'] } },
  },
  'gives an index up past its limit': {
    world: aWorld(aJob(perIndex), [
      aPod('a', { index: 0, phase: 'Failed', annotations: { [FAILURES]: '1' } }),
      aPod('b', { index: 1 }),
      aPod('c', { index: 2 }),
    ]),
    want: ['release a'],
    status: { failedIndexes: '0' },
    standing: [],
  },
  'fails when more indexes failed than may': {
    world: aWorld(aJob({ ...perIndex, maxFailedIndexes: 0 }, { failedIndexes: '0' }), [aPod('b', { index: 1 })]),
    want: ['delete b', 'release b'],
    standing: ['FailureTarget'],
  },
  'meets a success policy, and the others do not fail by it': {
    world: aWorld(aJob({ ...indexed, successPolicy: { rules: [{ succeededIndexes: '0-1', succeededCount: 1 }] } }), [
      aPod('a', { index: 0, phase: 'Succeeded' }),
      aPod('b', { index: 1 }),
    ]),
    want: ['delete b', 'release a', 'release b'],
    standing: ['SuccessCriteriaMet'],
    status: { completedIndexes: '0', uncountedTerminatedPods: {} },
  },
};

for (const [name, { world, want, status, events, again, standing }] of Object.entries(cases)) {
  test(`a Job ${name}`, () => {
    const plan = decideJob(world);
    assert.deepEqual(inWords(plan.changes), want);
    assert.equal(plan.requeueAfterMs, again);
    for (const [field, value] of Object.entries(status ?? {})) assert.deepEqual(plan.status?.[field], value, field);
    if (events !== undefined) {
      assert.deepEqual(
        plan.events?.map(({ type, reason, message }) => `${type} ${reason} ${message}`),
        events,
      );
    }
    if (standing !== undefined) {
      const conditions = (plan.status?.['conditions'] ?? []) as { type: string; status: string }[];
      const found = conditions.filter((condition) => condition.status === 'True').map(({ type }) => type);
      assert.deepEqual(found, standing);
    }
  });
}

function inWords(changes: readonly Change[]): string[] {
  const creates = changes.filter((change) => change.do === 'create').length;
  const others = changes.flatMap((change) => {
    if (change.do === 'create') return [];
    const strategic = change.do === 'patch' && change.patch.type === 'strategic';
    return [`${strategic ? 'release' : change.do} ${change.name.name}`];
  });
  return creates > 0 ? [...others, `create ${creates}`] : others;
}

test('who decides twice on one state names the same pods, and who goes on names others', () => {
  const names = (world: JobWorld) =>
    decideJob(world).changes.flatMap((change) => (change.do === 'create' ? [change.object.metadata.name] : []));
  const job = aJob({ parallelism: 2, completions: 5 });
  const first = names(aWorld(job));
  assert.equal(new Set(first).size, 2);
  assert.deepEqual(names(aWorld(job)), first);
  // One of them is shown by the cache, the other not yet.
  assert.deepEqual(names(aWorld(job, [aPod(first[0]!)])), [first[1]]);
  const later = names(aWorld(aJob({ parallelism: 2, completions: 5 }, { succeeded: 2 })));
  assert.deepEqual(
    later.filter((name) => first.includes(name)),
    [],
  );
  const other = names(aWorld(aJob({ parallelism: 2, completions: 5 }, {}, { uid: 'another' })));
  assert.notDeepEqual(other, first);
});
