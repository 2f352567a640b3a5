import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseYamlText } from '#engine/codec.ts';
import { findDuplicateYamlKeys, warningLines } from '#engine/yaml-duplicates.ts';

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
};

describe('findDuplicateYamlKeys', () => {
  for (const [name, { text, want }] of Object.entries(cases)) {
    test(name, () => {
      const found = findDuplicateYamlKeys(text);
      assert.equal(found, want && ['yaml: unmarshal errors:', ...want].join('\n  '));
      assert.deepEqual(found === undefined ? undefined : warningLines(found), want);
    });
  }

  test('the last of several values counts', () => assert.deepEqual(parseYamlText('a: 1\na: 2\n'), { a: 2 }));
  test('other errors still throw', () => assert.throws(() => parseYamlText('a: [')));
});
