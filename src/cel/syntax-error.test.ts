import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeProblems } from '#cel/syntax-error.ts';

const cases: Record<string, { source: string; at: number; want: string }> = {
  'the marker is below the line': {
    source: 'object.spec.(',
    at: 12,
    want: 'ERROR: <input>:1:13: m\n | object.spec.(\n | ............^',
  },
  'only the line with the problem is shown': {
    source: 'a &&\n  b &&\nc',
    at: 7,
    want: 'ERROR: <input>:2:3: m\n |   b &&\n | ..^',
  },
  'the last line': { source: 'a &&\nb', at: 5, want: 'ERROR: <input>:2:1: m\n | b\n | ^' },
  'the end of the source': { source: 'a +', at: 3, want: 'ERROR: <input>:1:4: m\n | a +\n | ...^' },
  'the end of a line': { source: 'a +\nb', at: 3, want: 'ERROR: <input>:1:4: m\n | a +\n | ...^' },
  'tabs become spaces': { source: '\ta', at: 1, want: 'ERROR: <input>:1:2: m\n |  a\n | .^' },
  'non-ASCII characters before the marker are wide': {
    source: "'ü😁' + x",
    at: 8,
    want: "ERROR: <input>:1:8: m\n | 'ü😁' + x\n | .\uff0e\uff0e....^",
  },
  'a marker below a non-ASCII character is wide': {
    source: '😁',
    at: 0,
    want: 'ERROR: <input>:1:1: m\n | 😁\n | \uff3e',
  },
  'an empty source has no line': { source: '', at: 0, want: 'ERROR: <input>:1:1: m' },
  'a problem of the whole source has no line': { source: 'a', at: -1, want: 'ERROR: <input>:-1:0: m' },
  'a line that is too long is not shown': {
    source: `${'a'.repeat(16_384)}b`,
    at: 3,
    want: 'ERROR: <input>:1:4: m',
  },
};

for (const [sentence, { source, at, want }] of Object.entries(cases)) {
  test(`formats problems as cel-go does: ${sentence}`, () => {
    assert.equal(describeProblems(source, [{ at, message: 'm' }]), want);
  });
}

test('problems are listed in the order of the source', () => {
  const problems = [
    { at: 4, message: 'second' },
    { at: 0, message: 'first' },
  ];
  assert.equal(
    describeProblems('a + b', problems),
    'ERROR: <input>:1:1: first\n | a + b\n | ^\nERROR: <input>:1:5: second\n | a + b\n | ....^',
  );
});

test('lists a hundred problems and counts the others', () => {
  const problems = Array.from({ length: 103 }, () => ({ at: 0, message: 'm' }));
  const lines = describeProblems('a', problems, 2).split('\n');
  assert.equal(lines.length, 301);
  assert.equal(lines.at(-1), '5 more errors were truncated');
});
