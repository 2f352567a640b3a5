import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findNearest, suggestion } from '#lib/text/nearest.ts';

const KNOWN = ['start', 'stop', 'restart', 'migrate', 'migrate-cancel', 'version', 'vnc'];

const cases: Record<string, [word: string, want: string | undefined]> = {
  'accepts two swapped letters': ['strat', 'start'],
  'accepts a missing letter': ['sart', 'start'],
  'accepts an additional letter': ['versionn', 'version'],
  'accepts a changed letter': ['miGrade', 'migrate'],
  'completes the beginning of a word': ['migrate-ca', 'migrate-cancel'],
  'completes a beginning to the first known word': ['mig', 'migrate'],
  'accepts one mistake in a short word': ['vmc', 'vnc'],
  'does not accept two mistakes in a short word': ['xyc', undefined],
  'finds nothing if no word is near': ['explode', undefined],
  'finds nothing for an empty word': ['', undefined],
  'does not compare a very long word': ['s'.repeat(5000), undefined],
};
for (const [title, [word, want]] of Object.entries(cases)) {
  test(title, () => assert.equal(findNearest(word, KNOWN), want));
}

test('suggests the nearest word, or returns an empty string', () => {
  assert.equal(suggestion('strat', KNOWN), '; did you mean "start"?');
  assert.equal(
    suggestion('strat', KNOWN, (name) => `--${name}`),
    '; did you mean --start?',
  );
  assert.equal(suggestion('explode', KNOWN), '');
});
