import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeCosts, deletionsText } from './deletions-text.ts';
import type { Deletions, Run } from './measure-deletions.ts';

const deletion = (ms: number) => ({ ms, middleMs: ms / 500 });

function aRun(baselineMs: number, policyMs: number): Run {
  return {
    Baseline: deletion(baselineMs),
    VAP: deletion(policyMs),
    'Admission Webhook': deletion(2 * baselineMs),
    'Admission Webhook (HTTPS)': deletion(3 * baselineMs),
  };
}

function deletionsOf(runs: readonly Run[], kubectl: Deletions['kubectl'] = 'there is none'): Deletions {
  return { batches: [{ batch: { count: 400, running: false, times: 1 }, runs }], kubectl };
}

test('prints times as the original table does', () => {
  const lines = deletionsText(deletionsOf([aRun(78_970, 78_960)])).split('\n');
  assert.deepEqual(lines.slice(3, 6), [
    '| Solution                  | Deletion time stopped 400 VMs(s) |',
    '|:--------------------------|:---------------------------------|',
    '| Baseline                  | 78.97                            |',
  ]);
});

const verdicts: Record<string, { runs: readonly Run[]; ratio: number; want: 'ok' | 'missed' }> = {
  'a policy that costs 3 % is within its bar': { runs: [aRun(1000, 1030)], ratio: 1.03, want: 'ok' },
  'a policy that costs more misses its bar': { runs: [aRun(1000, 1031)], ratio: 1.031, want: 'missed' },
  'each run is compared with its own baseline, and the median counts': {
    runs: [aRun(1000, 1010), aRun(2000, 2040), aRun(100, 150)],
    ratio: 1.02,
    want: 'ok',
  },
};

for (const [what, { runs, ratio, want }] of Object.entries(verdicts)) {
  test(what, () => {
    const policy = computeCosts(deletionsOf(runs)).find(({ solution }) => solution === 'VAP');
    assert.deepEqual([policy?.ratio, policy?.verdict], [ratio, want]);
    assert.match(deletionsText(deletionsOf(runs)), new RegExp(`^VAP, .* at most 103.0 %: ${want}$`, 'm'));
  });
}

test('only the policy has a bar', () => {
  const withVerdict = computeCosts(deletionsOf([aRun(1000, 1000)])).filter(({ verdict }) => verdict !== undefined);
  assert.deepEqual(
    withVerdict.map(({ solution }) => solution),
    ['VAP'],
  );
});

test('reports the time of kubectl separately, or why it is missing', () => {
  const measured = deletionsOf([aRun(1000, 1000)], { count: 40, seconds: 6.5, version: 'v1.32.0' });
  assert.match(
    deletionsText(measured),
    /kubectl v1\.32\.0 delete vm --all, 40 stopped VMs, with the policy: 6\.50 s\n/,
  );
  assert.match(deletionsText(deletionsOf([aRun(1000, 1000)])), /not measured, there is none$/);
});
