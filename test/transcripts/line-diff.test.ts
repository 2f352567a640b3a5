import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineDiff } from '#test/transcripts/line-diff.ts';

const cases: Record<string, { wanted: string; got: string; want: string }> = {
  'equal texts': { wanted: 'a\nb', got: 'a\nb', want: '  a\n  b' },
  'a changed line': { wanted: 'a\nb\nc', got: 'a\nx\nc', want: '  a\n- b\n+ x\n  c' },
  'a missing line': { wanted: 'a\nb\nc', got: 'a\nc', want: '  a\n- b\n  c' },
  'an added line': { wanted: 'a\nc', got: 'a\nb\nc\nd', want: '  a\n+ b\n  c\n+ d' },
  'nothing in common': { wanted: 'a', got: 'b', want: '- a\n+ b' },
};

for (const [name, { wanted, got, want }] of Object.entries(cases)) {
  test(`lineDiff: ${name}`, () => assert.equal(lineDiff(wanted, got), want));
}
