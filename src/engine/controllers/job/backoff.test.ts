import assert from 'node:assert/strict';
import { test } from 'node:test';
import { learnFailures, NO_FAILURES, backoffRemainingMs, jobBackoffMs } from '#engine/controllers/job/backoff.ts';
import { aJob, aPod, NOW_MS } from '#engine/controllers/job/testing/job-world.ts';

const { spec } = aJob();
const failed = (name: string, endedAgo: number, counted = false) => aPod(name, { phase: 'Failed', endedAgo, counted });
const waits = { 1: 10, 2: 20, 3: 40, 6: 320, 7: 600, 99: 600 };

for (const [failures, seconds] of Object.entries(waits)) {
  test(`after ${failures} failures a Job waits ${seconds} s`, () => {
    assert.equal(backoffRemainingMs(Number(failures), NOW_MS, NOW_MS), seconds * 1000);
  });
}

test('counts a failed pod once, even after it is deleted', () => {
  const once = learnFailures(NO_FAILURES, [failed('a', 5)], spec);
  const twice = learnFailures(once, [failed('a', 5)], spec);
  const gone = learnFailures(twice, [], spec);
  assert.deepEqual(
    [once, twice, gone].map((record) => jobBackoffMs(record, NOW_MS)),
    [5000, 5000, 5000],
  );
});

test('a success resets the failures before it', () => {
  const success = aPod('b', { phase: 'Succeeded', endedAgo: 4 });
  const record = learnFailures(NO_FAILURES, [failed('a', 5), success, failed('c', 3)], spec);
  assert.equal(jobBackoffMs(record, NOW_MS), 7000);
});

test('after a restart, learns from pods that were counted, but not from pods that the controller deleted', () => {
  const deletedPod = aPod('b', { phase: 'Failed', counted: true, deleting: true });
  assert.equal(jobBackoffMs(learnFailures(undefined, [failed('a', 5, true), deletedPod], spec), NOW_MS), 5000);
  assert.equal(jobBackoffMs(learnFailures(NO_FAILURES, [failed('a', 5, true)], spec), NOW_MS), 0);
});

test('remembers no more failures than it needs', () => {
  const many = Array.from({ length: 50 }, (_, i) => failed(`p${i}`, 100 - i));
  const record = learnFailures(NO_FAILURES, many, spec);
  assert.equal(record.failed.length, 8);
  assert.equal(record.failed.at(-1)?.uid, 'uid-p49');
});

test('does not wait longer if the clock was set back', () => {
  assert.equal(backoffRemainingMs(1, NOW_MS + 3_600_000, NOW_MS), 10_000);
});
