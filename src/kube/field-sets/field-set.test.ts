import assert from 'node:assert/strict';
import test from 'node:test';
import {
  covers,
  difference,
  differenceWithChildren,
  fieldSetOf,
  intersection,
  isEmpty,
  leavesOf,
  NO_FIELDS,
  hasSameFields,
  union,
} from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { formatFieldsV1, parseFieldsV1 } from './fields-v1.ts';

const L = {};
type Json = Record<string, unknown>;

const parent = { 'f:a': L };
const child = { 'f:a': { 'f:b': L } };
const both = { 'f:a': { '.': L, 'f:b': L } };
const other = { 'f:c': L };

const algebra: Record<string, { do: (a: FieldSet, b: FieldSet) => FieldSet; a: Json; b: Json; want: Json }> = {
  'union merges parents and children': { do: union, a: parent, b: child, want: both },
  'union with an empty set changes nothing': { do: union, a: parent, b: {}, want: parent },
  'union of disjoint sets has the paths of both': { do: union, a: parent, b: other, want: { 'f:a': L, 'f:c': L } },
  'intersection of a parent and its child is empty': { do: intersection, a: parent, b: child, want: {} },
  'intersection keeps the common paths': { do: intersection, a: both, b: child, want: child },
  'difference of a parent and its child is the parent': { do: difference, a: parent, b: child, want: parent },
  'difference of a child and its parent is the child': { do: difference, a: child, b: parent, want: child },
  'differenceWithChildren removes a child with its parent': {
    do: differenceWithChildren,
    a: both,
    b: parent,
    want: {},
  },
  'differenceWithChildren keeps the parent of a removed child': {
    do: differenceWithChildren,
    a: both,
    b: child,
    want: parent,
  },
  'difference leaves no empty branches': {
    do: difference,
    a: { 'f:a': { 'f:b': { 'f:c': L } }, 'f:d': L },
    b: { 'f:a': { 'f:b': { 'f:c': L } } },
    want: { 'f:d': L },
  },
  'leavesOf returns the members without members below': {
    do: leavesOf,
    a: { 'f:a': { '.': L, 'f:b': L }, 'f:c': L },
    b: {},
    want: { 'f:a': { 'f:b': L }, 'f:c': L },
  },
};

for (const [sentence, { do: operation, a, b, want }] of Object.entries(algebra)) {
  test(sentence, () => {
    assert.deepEqual(formatFieldsV1(operation(parseFieldsV1(a), parseFieldsV1(b))), want);
  });
}

test('is built from paths', () => {
  const set = fieldSetOf(['f:a', 'k:{"name":"x"}'], ['f:a'], []);
  assert.deepEqual(formatFieldsV1(set), { 'f:a': { '.': {}, 'k:{"name":"x"}': {} } });
});

test('union returns its first set if the second adds nothing', () => {
  const set = parseFieldsV1(both);
  assert.equal(union(set, parseFieldsV1(child)), set);
});

test('a set without paths is empty', () => {
  assert.ok(isEmpty(NO_FIELDS));
  assert.ok(isEmpty(fieldSetOf()));
  assert.ok(isEmpty(difference(parseFieldsV1(both), parseFieldsV1(both))));
  assert.ok(!isEmpty(parseFieldsV1(child)));
});

test('sets are the same if they have the same members', () => {
  assert.ok(hasSameFields(parseFieldsV1({ 'f:a': L, 'f:c': L }), parseFieldsV1({ 'f:c': L, 'f:a': L })));
  assert.ok(!hasSameFields(parseFieldsV1(both), parseFieldsV1(child)));
  assert.ok(!hasSameFields(parseFieldsV1(parent), parseFieldsV1(other)));
});

test('a set covers only its subsets', () => {
  assert.ok(covers(parseFieldsV1(both), parseFieldsV1(child)));
  assert.ok(covers(parseFieldsV1(both), NO_FIELDS));
  assert.ok(!covers(parseFieldsV1(child), parseFieldsV1(both)));
  assert.ok(!covers(parseFieldsV1(parent), parseFieldsV1(other)));
});
