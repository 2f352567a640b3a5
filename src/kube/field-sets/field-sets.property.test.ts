/** Laws of sets, comparisons and merges, checked with random sets, schemas and values. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { deepEqual } from '#kube/deep.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';
import { createSeededRandom } from '#test/support/seeded-random.ts';
import { addsExactly, expectFields } from './adds-exactly.ts';
import { checkFieldTypes } from './check-config.ts';
import { compareFields } from './compare-fields.ts';
import { describePaths } from './describe-paths.ts';
import {
  covers,
  difference,
  differenceWithChildren,
  intersection,
  isEmpty,
  leavesOf,
  NO_FIELDS,
  hasSameFields,
  union,
} from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { fieldsOf, namedFieldsOf } from './fields-of.ts';
import { formatFieldsV1, parseFieldsV1 } from './fields-v1.ts';
import { mergeConfig } from './merge-config.ts';
import { adaptFields, addNamedFields } from './named-fields.ts';
import { randomObject, randomObjectSchema, randomSet, shuffle } from './testing/random-fields.ts';
import { emptyFields, removeFields } from './remove-fields.ts';

const RUNS = 400;

const jsonOf = (set: FieldSet) => JSON.stringify(formatFieldsV1(set));

function assertSame(a: FieldSet, b: FieldSet, law: string): void {
  assert.ok(hasSameFields(a, b), `${law}: ${jsonOf(a)} and ${jsonOf(b)}`);
}

function assertEmpty(set: FieldSet, law: string): void {
  assert.ok(isEmpty(set), `${law}: ${jsonOf(set)}`);
}

/** Returns the same value with the keys of its maps in another order. */
function reorderKeys(random: SeededRandom, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => reorderKeys(random, item));
  return Object.fromEntries(
    shuffle(random, Object.entries(value)).map(([name, item]) => [name, reorderKeys(random, item)]),
  );
}

test('reads back what it has written, and writes equal sets alike', (t) => {
  const random = createSeededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const set = randomSet(random);
    const json = JSON.parse(jsonOf(set)) as unknown;
    assertSame(parseFieldsV1(json), set, 'parse of format');
    assert.equal(jsonOf(parseFieldsV1(reorderKeys(random, json))), jsonOf(set));
  }
});

test('sets obey the laws of sets', (t) => {
  const random = createSeededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const [a, b, c] = [randomSet(random), randomSet(random), randomSet(random)];
    const before = [a, b, c].map(jsonOf);
    assertSame(union(a, b), union(b, a), 'union commutes');
    assertSame(union(a, union(b, c)), union(union(a, b), c), 'union associates');
    assertSame(intersection(a, b), intersection(b, a), 'intersection commutes');
    assertSame(intersection(a, union(b, c)), union(intersection(a, b), intersection(a, c)), 'intersection distributes');
    assertSame(union(a, a), a, 'union with itself');
    assertSame(union(a, NO_FIELDS), a, 'union with nothing');
    assertSame(union(difference(a, b), intersection(a, b)), a, 'difference and intersection together are the whole');
    assertEmpty(intersection(difference(a, b), b), 'a difference contains nothing of the subtracted set');
    assertEmpty(difference(a, a), 'difference with itself');
    assertSame(difference(a, union(b, c)), difference(difference(a, b), c), 'differences can be applied one by one');
    assert.ok(covers(union(a, b), a) && covers(a, intersection(a, b)) && covers(a, difference(a, b)));
    assert.ok(covers(difference(a, b), differenceWithChildren(a, b)));
    assert.equal(covers(a, b), isEmpty(difference(b, a)));
    assert.ok(covers(a, leavesOf(a)));
    assert.equal(describePaths(union(a, b)).length, describePaths(a).length + describePaths(difference(b, a)).length);
    assert.deepEqual([a, b, c].map(jsonOf), before);
  }
});

test('values, their fields and their differences agree', (t) => {
  const random = createSeededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [a, b] = [randomObject(random, schema), randomObject(random, schema)];
    assert.deepEqual(checkFieldTypes(a, schema), []);
    const alike = compareFields(a, reorderKeys(random, a), schema);
    assertEmpty(union(alike.added, union(alike.modified, alike.removed)), 'equal values do not differ');
    const there = compareFields(a, b, schema);
    const back = compareFields(b, a, schema);
    assertSame(there.added, back.removed, 'an addition is a removal in the other direction');
    assertSame(there.modified, back.modified, 'a modification is one in both directions');
    assertEmpty(intersection(there.added, there.removed), 'nothing is both added and removed');
    assertEmpty(intersection(there.added, there.modified), 'nothing is both added and modified');
    const present = compareFields(undefined, a, schema).added;
    assert.ok(covers(present, fieldsOf(a, schema)), 'owned fields are present');
    const fresh = difference(fieldsOf(b, schema), present);
    assert.ok(covers(union(there.added, there.modified), fresh), `new fields are found: ${jsonOf(fresh)}`);
    const set = fieldsOf(a, schema);
    assert.equal(adaptFields(set, schema), set);
    assert.ok(covers(present, addNamedFields(set, schema)), 'named fields are present');
  }
});

test('merging adds the applied fields, and again changes nothing', (t) => {
  const random = createSeededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [live, config] = [randomObject(random, schema), randomObject(random, schema)];
    assert.deepEqual(mergeConfig(live, reorderKeys(random, live), schema), live);
    const merged = mergeConfig(live, config, schema);
    assert.ok(deepEqual(mergeConfig(merged, config, schema), merged), 'a second merge changes nothing');
    assert.deepEqual(checkFieldTypes(merged, schema), []);
    const present = compareFields(undefined, merged, schema).added;
    assert.ok(covers(present, fieldsOf(config, schema)), 'applied fields are present');
    // A leaf may replace a free map.
    const kept = differenceWithChildren(fieldsOf(live, schema), leavesOf(fieldsOf(config, schema)));
    assert.ok(covers(present, kept), 'other fields stay');
  }
});

test('removing removes the given fields and nothing else', (t) => {
  const random = createSeededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [value, other] = [randomObject(random, schema), randomObject(random, schema)];
    const all = fieldsOf(value, schema);
    assertEmpty(fieldsOf(removeFields(value, all, schema), schema), 'no owned field is left');
    const gone = fieldsOf(other, schema);
    const rest = removeFields(value, gone, schema);
    assertEmpty(intersection(fieldsOf(rest, schema), gone), 'no given field is left');
    const { added, modified, removed } = compareFields(value, rest, schema);
    assertEmpty(union(added, modified), 'nothing is added or modified');
    assertSame(
      differenceWithChildren(difference(fieldsOf(rest, schema), all), removed),
      NO_FIELDS,
      'the rest was present before',
    );
  }
});

test('a new object adds exactly the fields of another if and only if a comparison finds so', (t) => {
  const random = createSeededRandom(t);
  let [alike, unlike] = [0, 0];
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [a, b] = [randomObject(random, schema), randomObject(random, schema)];
    const { added } = compareFields({}, a, schema);
    const expected = expectFields(added, schema) ?? assert.fail('it is a map');
    assert.ok(addsExactly(a, {}, expected), `its own fields: ${JSON.stringify(a)}`);
    const isSame = hasSameFields(compareFields({}, b, schema).added, added);
    assert.equal(addsExactly(b, {}, expected), isSame, `${JSON.stringify(a)} and ${JSON.stringify(b)}`);
    if (isSame) alike++;
    else unlike++;
  }
  assert.ok(alike > 0 && unlike > 0);
});

test('emptyFields leaves null where the last item was removed, and nothing else differs', (t) => {
  const random = createSeededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const object = randomObject(random, schema);
    const gone = fieldsOf(randomObject(random, schema), schema);
    assertSame(
      namedFieldsOf(object, schema),
      addNamedFields(fieldsOf(object, schema), schema),
      'named fields in one pass',
    );
    const emptied = emptyFields(object, gone, schema);
    const kept = fieldsOf(removeFields(object, gone, schema), schema);
    assertEmpty(difference(kept, fieldsOf(emptied, schema)), 'other fields stay');
    assertEmpty(
      intersection(leavesOf(gone), leavesOf(difference(fieldsOf(emptied, schema), kept))),
      'given fields are removed',
    );
  }
});
