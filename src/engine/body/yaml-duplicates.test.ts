import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseYamlText } from '#engine/body/decode-body.ts';
import { parseYamlWithDuplicates, warningLines } from '#engine/body/yaml-duplicates.ts';

const cases: Record<string, { text: string; want: string[] | undefined }> = {
  'no duplicates': { text: 'a: 1\nb: {a: 2}\n', want: undefined },
  'a key': { text: 'a: 1\nb: 2\na: 3\n', want: ['line 3: key "a" already set in map'] },
  'the line is that of the value': { text: 'a: 1\na:\n  b: 2\n', want: ['line 3: key "a" already set in map'] },
  'nested duplicates come first': {
    text: 'x: 1\nx: {a: 1, a: 2}\n',
    want: ['line 2: key "a" already set in map', 'line 2: key "x" already set in map'],
  },
  'in a list': { text: '- a: 1\n- b: 2\n  b: 3\n', want: ['line 3: key "b" already set in map'] },
  'a number': { text: '{1: a, 1: b}', want: ['line 1: key 1 already set in map'] },
  'an absent value has the line of its key': {
    text: 'a: 1\na:\n\nb: 2\n',
    want: ['line 2: key "a" already set in map'],
  },
  'a block has the line of its header': { text: 'a: 1\na: |\n  x\n', want: ['line 2: key "a" already set in map'] },
  'a quoted text has the line of its quote': {
    text: 'a: 1\na: "\n  x"\n',
    want: ['line 2: key "a" already set in map'],
  },
  'an anchored map has the line of its first key': {
    text: 'a: 1\na: &x\n  b: 1\n',
    want: ['line 3: key "a" already set in map'],
  },
  'an alias': { text: 'a: &x 1\na:\n  *x\n', want: ['line 3: key "a" already set in map'] },
  'lines that end with CR and LF': { text: 'a: 1\r\na: 2\r\n', want: ['line 2: key "a" already set in map'] },
  'keys that only look alike': { text: '1: a\n"1": b\n', want: undefined },
  'at most one hundred': {
    text: 'a: 1\n'.repeat(500),
    want: Array.from({ length: 100 }, (_, index) => `line ${index + 2}: key "a" already set in map`),
  },
  __proto__: { text: '__proto__: 1\n__proto__: 2\n', want: ['line 2: key "__proto__" already set in map'] },
};

describe('parseYamlWithDuplicates', () => {
  for (const [name, { text, want }] of Object.entries(cases)) {
    test(name, () => {
      const found = parseYamlWithDuplicates(text).duplicates;
      assert.equal(found, want && ['yaml: unmarshal errors:', ...want].join('\n  '));
      assert.deepEqual(found === undefined ? undefined : warningLines(found), want);
    });
  }

  test('the last of several values counts', () => assert.deepEqual(parseYamlText('a: 1\na: 2\n'), { a: 2 }));
  test('other errors still throw', () => assert.throws(() => parseYamlText('a: [')));
});
