import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DeletionRounds, lookAgainMs } from '#engine/controllers/deletion-round.ts';
import { conflict, MODIFIED } from '#kube/api-error.ts';
import type { Failure } from '#runtime/plan.ts';

const PODS = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const place = (key: string) => ({ kind: 'pods', key });
const refusal = (name: string, error: unknown = new Error(`${name} stays`)): Failure => ({
  change: { do: 'delete', type: PODS, name: { name }, uid: name, why: 'x' },
  error,
});
const byName = () => new DeletionRounds((change) => (change.do === 'delete' ? change.name.name : ''));

test('a round goes on after the last plan until the end is seen, and tells all that was refused in it', () => {
  const rounds = byName();
  assert.equal(rounds.of('ns', 'u').after, undefined);
  rounds.looked('ns', 'u', { count: 2, complete: false, last: place('b') });
  assert.deepEqual(rounds.learn('ns', [refusal('b')]), ['b stays']);
  assert.deepEqual(rounds.of('ns', 'u').after, place('b'));
  assert.equal(rounds.of('ns', 'made anew').after, undefined);

  rounds.looked('ns', 'u', { count: 3, complete: true, last: place('c') });
  const stale = refusal('d', conflict(PODS, 'd', MODIFIED));
  assert.deepEqual(rounds.learn('ns', [refusal('a'), stale, refusal('b', new Error('again'))]), ['a stays', 'b stays']);
  assert.equal(rounds.of('ns', 'u').after, undefined);

  rounds.looked('ns', 'u', { count: 1, complete: true, last: place('a') });
  assert.deepEqual(rounds.learn('ns', [refusal('a')]), ['a stays'], 'another round, other refusals');
});

test('rounds that find as much as before are quiet; plans within a round neither count nor wake', () => {
  const rounds = byName();
  const look = (count: number, complete = true) =>
    rounds.looked('ns', 'u', { count, complete, last: complete ? undefined : place('x') }).quiet;
  assert.deepEqual([look(3), look(3), look(1, false), look(3), look(2), look(2)], [0, 1, 1, 2, 0, 1]);
  rounds.forget('ns');
  assert.equal(look(2), 0);
});

const delays: Record<string, [{ complete: boolean; quiet: number }, number]> = {
  'the next plan of a round comes soon, however quiet it was': [{ complete: false, quiet: 9 }, 100],
  'the second round comes soon': [{ complete: true, quiet: 0 }, 500],
  'quiet rounds come ever later': [{ complete: true, quiet: 3 }, 4000],
  'but not later than this': [{ complete: true, quiet: 50 }, 15_000],
};
for (const [name, [round, want]] of Object.entries(delays)) {
  test(name, () => assert.equal(lookAgainMs(round), want));
}
