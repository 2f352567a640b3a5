import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearest, suggestion } from '#lib/nearest.ts';

const KNOWN = ['start', 'stop', 'restart', 'migrate', 'migrate-cancel', 'version', 'vnc'];

const cases: Record<string, [word: string, want: string | undefined]> = {
  'two letters swapped': ['strat', 'start'],
  'one missing': ['sart', 'start'],
  'one too many': ['versionn', 'version'],
  'one changed': ['miGrade', 'migrate'],
  'a beginning': ['migrate-ca', 'migrate-cancel'],
  'the shortest that fits': ['mig', 'migrate'],
  'a short word may have one mistake': ['vmc', 'vnc'],
  'and not two': ['xyc', undefined],
  'nothing near': ['explode', undefined],
  'nothing at all': ['', undefined],
  'a word without end': ['s'.repeat(5000), undefined],
};
for (const [title, [word, want]] of Object.entries(cases)) {
  test(title, () => assert.equal(nearest(word, KNOWN), want));
}

test('a question, or nothing', () => {
  assert.equal(suggestion('strat', KNOWN), '; did you mean "start"?');
  assert.equal(
    suggestion('strat', KNOWN, (name) => `--${name}`),
    '; did you mean --start?',
  );
  assert.equal(suggestion('explode', KNOWN), '');
});
