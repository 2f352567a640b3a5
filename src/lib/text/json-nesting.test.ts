import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNestedDeeper } from '#lib/text/json-nesting.ts';

const cases: Record<string, { readonly text: string; readonly want: boolean }> = {
  'a value without nesting': { text: '1', want: false },
  'as deep as allowed': { text: '[{"a":[]}]', want: false },
  'one level deeper': { text: '[{"a":[[]]}]', want: true },
  'lists beside each other': { text: '[[],[],[],[],[]]', want: false },
  'brackets in a string': { text: '["[[[[[["]', want: false },
  'brackets after an escaped quote': { text: String.raw`["\"[[[["]`, want: false },
  'brackets after an escaped backslash': { text: String.raw`["\\",[[[]]]]`, want: true },
  'a string that does not end': { text: '["[[[[', want: false },
  'brackets that are not closed': { text: '[[[[', want: true },
};
for (const [name, { text, want }] of Object.entries(cases)) {
  test(`nesting of JSON: ${name}`, () => assert.equal(isNestedDeeper(text, 3), want));
}
