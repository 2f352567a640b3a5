import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DeletionRounds, roundDelayMs } from '#engine/controllers/deletion-round.ts';
import { conflict, MODIFIED } from '#kube/api-error.ts';
import type { FailedChange } from '#runtime/plan.ts';

const PODS = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const place = (key: string) => ({ kind: 'pods', key });
const refusal = (name: string, error: unknown = new Error(`${name} stays`)): FailedChange => ({
  change: { do: 'delete', type: PODS, name: { name }, uid: name, why: 'x' },
  error,
});
const byName = () => new DeletionRounds((change) => (change.do === 'delete' ? change.name.name : ''));

test('continues a round after the last plan until everything was listed, and reports all its refusals', () => {
  const rounds = byName();
  assert.equal(rounds.roundOf('ns', 'u').after, undefined);
  rounds.recordObservation('ns', 'u', { count: 2, complete: false, last: place('b') });
  assert.deepEqual(rounds.recordFailures('ns', [refusal('b')]), ['b stays']);
  assert.deepEqual(rounds.roundOf('ns', 'u').after, place('b'));
  assert.equal(rounds.roundOf('ns', 'recreated').after, undefined);

  rounds.recordObservation('ns', 'u', { count: 3, complete: true, last: place('c') });
  const stale = refusal('d', conflict(PODS, 'd', MODIFIED));
  assert.deepEqual(rounds.recordFailures('ns', [refusal('a'), stale, refusal('b', new Error('again'))]), [
    'a stays',
    'b stays',
  ]);
  assert.equal(rounds.roundOf('ns', 'u').after, undefined);

  rounds.recordObservation('ns', 'u', { count: 1, complete: true, last: place('a') });
  assert.deepEqual(rounds.recordFailures('ns', [refusal('a')]), ['a stays'], 'another round, other refusals');
});

test('counts complete rounds without progress, and ignores plans within a round', () => {
  const rounds = byName();
  const observe = (count: number, complete = true) =>
    rounds.recordObservation('ns', 'u', { count, complete, last: complete ? undefined : place('x') }).unchangedRounds;
  assert.deepEqual([observe(3), observe(3), observe(1, false), observe(3), observe(2), observe(2)], [0, 1, 1, 2, 0, 1]);
  rounds.forget('ns');
  assert.equal(observe(2), 0);
});

const delays: Record<string, [{ complete: boolean; unchangedRounds: number }, number]> = {
  'the next plan of a round comes soon, regardless of unchanged rounds': [{ complete: false, unchangedRounds: 9 }, 100],
  'the second round comes soon': [{ complete: true, unchangedRounds: 0 }, 500],
  'unchanged rounds increase the delay': [{ complete: true, unchangedRounds: 3 }, 4000],
  'the delay has a maximum': [{ complete: true, unchangedRounds: 50 }, 15_000],
};
for (const [name, [round, want]] of Object.entries(delays)) {
  test(name, () => assert.equal(roundDelayMs(round), want));
}
