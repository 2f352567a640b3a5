import assert from 'node:assert/strict';
import test from 'node:test';
import { formatFieldsV1, parseFieldsV1 } from './fields-v1.ts';
import { adaptFields, addNamedFields } from './named-fields.ts';
import { SAMPLE } from './testing/sample-set.ts';

const L = {};
type Json = Record<string, unknown>;

const named: Record<string, { set: Json; want: Json }> = {
  'makes a named field that contains members a member': {
    set: { 'f:spec': { 'f:tags': { 'v:"a"': L } } },
    want: { 'f:spec': { '.': L, 'f:tags': { '.': L, 'v:"a"': L } } },
  },
  'does not add items and entries of free maps': {
    set: { 'f:spec': { 'f:parts': { 'k:{"name":"a"}': { 'f:free': { 'f:x': { 'f:y': L } } } } } },
    want: {
      'f:spec': {
        '.': L,
        'f:parts': { '.': L, 'k:{"name":"a"}': { 'f:free': { '.': L, 'f:x': { 'f:y': L } } } },
      },
    },
  },
  'does not add fields that the schema does not have': {
    set: { 'f:other': { 'f:x': L } },
    want: { 'f:other': { 'f:x': L } },
  },
};

for (const [sentence, { set, want }] of Object.entries(named)) {
  test(sentence, () => assert.deepEqual(formatFieldsV1(addNamedFields(parseFieldsV1(set), SAMPLE)), want));
}

const adapted: Record<string, { set: Json; want: Json }> = {
  'owns a list that became atomic as a whole': {
    set: { 'f:spec': { 'f:args': { 'v:"a"': L }, 'f:size': L } },
    want: { 'f:spec': { 'f:args': L, 'f:size': L } },
  },
  'owns a map that became atomic as a whole': {
    set: { 'f:spec': { 'f:selector': { '.': L, 'f:a': L } } },
    want: { 'f:spec': { 'f:selector': L } },
  },
  'keeps items of a map list that stayed granular': {
    set: { 'f:spec': { 'f:parts': { 'k:{"name":"a"}': { '.': L, 'f:size': L } }, 'f:args': { 'i:0': L } } },
    want: { 'f:spec': { 'f:args': L, 'f:parts': { 'k:{"name":"a"}': { '.': L, 'f:size': L } } } },
  },
};

for (const [sentence, { set, want }] of Object.entries(adapted)) {
  test(`adapted: ${sentence}`, () => assert.deepEqual(formatFieldsV1(adaptFields(parseFieldsV1(set), SAMPLE)), want));
}

test('returns a set that fits its schema unchanged', () => {
  const set = parseFieldsV1({
    'f:labels': { 'f:a': L },
    'f:other': { 'f:list': { 'f:x': L } },
    'f:spec': { 'f:args': L, 'f:parts': { 'k:{"name":"a"}': { 'f:free': { 'f:x': { 'f:y': L } } } } },
  });
  assert.equal(adaptFields(set, SAMPLE), set);
});
