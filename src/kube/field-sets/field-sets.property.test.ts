/** Laws of sets, comparisons and merges, on random sets, schemas and values. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { deepEqual } from '#kube/deep.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';
import { seededRandom } from '#test/support/seeded-random.ts';
import { addsJust, expectedOf } from './adds-just.ts';
import { typeFaults } from './check-config.ts';
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
  sameFields,
  union,
} from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { fieldsOf, namedFieldsOf } from './fields-of.ts';
import { formatFieldsV1, parseFieldsV1 } from './fields-v1.ts';
import { mergeConfig } from './merge-config.ts';
import { mendFields, withNamedFields } from './named-fields.ts';
import { randomObject, randomObjectSchema, randomSet, shuffled } from './random-fields.fixture.ts';
import { emptyFields, removeFields } from './remove-fields.ts';

const RUNS = 400;

const jsonOf = (set: FieldSet) => JSON.stringify(formatFieldsV1(set));

function same(a: FieldSet, b: FieldSet, law: string): void {
  assert.ok(sameFields(a, b), `${law}: ${jsonOf(a)} and ${jsonOf(b)}`);
}

function none(set: FieldSet, law: string): void {
  assert.ok(isEmpty(set), `${law}: ${jsonOf(set)}`);
}

/** The same value with its keys, not its lists, in another order. */
function reordered(random: SeededRandom, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => reordered(random, item));
  return Object.fromEntries(
    shuffled(random, Object.entries(value)).map(([name, item]) => [name, reordered(random, item)]),
  );
}

test('what is written is read back, and equal sets are written alike', (t) => {
  const random = seededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const set = randomSet(random);
    const json = JSON.parse(jsonOf(set)) as unknown;
    same(parseFieldsV1(json), set, 'parse of format');
    assert.equal(jsonOf(parseFieldsV1(reordered(random, json))), jsonOf(set));
  }
});

test('sets obey the laws of sets', (t) => {
  const random = seededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const [a, b, c] = [randomSet(random), randomSet(random), randomSet(random)];
    const before = [a, b, c].map(jsonOf);
    same(union(a, b), union(b, a), 'union commutes');
    same(union(a, union(b, c)), union(union(a, b), c), 'union associates');
    same(intersection(a, b), intersection(b, a), 'intersection commutes');
    same(intersection(a, union(b, c)), union(intersection(a, b), intersection(a, c)), 'intersection distributes');
    same(union(a, a), a, 'union with itself');
    same(union(a, NO_FIELDS), a, 'union with nothing');
    same(union(difference(a, b), intersection(a, b)), a, 'difference and intersection make the whole');
    none(intersection(difference(a, b), b), 'a difference has nothing of what was taken');
    none(difference(a, a), 'difference with itself');
    same(difference(a, union(b, c)), difference(difference(a, b), c), 'differences follow each other');
    assert.ok(covers(union(a, b), a) && covers(a, intersection(a, b)) && covers(a, difference(a, b)));
    assert.ok(covers(difference(a, b), differenceWithChildren(a, b)));
    assert.equal(covers(a, b), isEmpty(difference(b, a)));
    assert.ok(covers(a, leavesOf(a)));
    assert.equal(describePaths(union(a, b)).length, describePaths(a).length + describePaths(difference(b, a)).length);
    assert.deepEqual([a, b, c].map(jsonOf), before);
  }
});

test('values, their fields and their differences agree', (t) => {
  const random = seededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [a, b] = [randomObject(random, schema), randomObject(random, schema)];
    assert.deepEqual(typeFaults(a, schema), []);
    const alike = compareFields(a, reordered(random, a), schema);
    none(union(alike.added, union(alike.modified, alike.removed)), 'equal values do not differ');
    const there = compareFields(a, b, schema);
    const back = compareFields(b, a, schema);
    same(there.added, back.removed, 'what came goes on the way back');
    same(there.modified, back.modified, 'what differs, differs both ways');
    none(intersection(there.added, there.removed), 'nothing comes and goes');
    none(intersection(there.added, there.modified), 'nothing comes and differs');
    const present = compareFields(undefined, a, schema).added;
    assert.ok(covers(present, fieldsOf(a, schema)), 'what is owned is there');
    const fresh = difference(fieldsOf(b, schema), present);
    assert.ok(covers(union(there.added, there.modified), fresh), `new fields are told: ${jsonOf(fresh)}`);
    const set = fieldsOf(a, schema);
    assert.equal(mendFields(set, schema), set);
    assert.ok(covers(present, withNamedFields(set, schema)), 'named fields are there, too');
  }
});

test('merging adds what is applied, once', (t) => {
  const random = seededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [live, config] = [randomObject(random, schema), randomObject(random, schema)];
    assert.deepEqual(mergeConfig(live, reordered(random, live), schema), live);
    const merged = mergeConfig(live, config, schema);
    assert.ok(deepEqual(mergeConfig(merged, config, schema), merged), 'a second merge changes nothing');
    assert.deepEqual(typeFaults(merged, schema), []);
    const present = compareFields(undefined, merged, schema).added;
    assert.ok(covers(present, fieldsOf(config, schema)), 'what is applied is there');
    // A leaf may take the place of a free map.
    const kept = differenceWithChildren(fieldsOf(live, schema), leavesOf(fieldsOf(config, schema)));
    assert.ok(covers(present, kept), 'what was there stays');
  }
});

test('removing takes what is named and nothing else', (t) => {
  const random = seededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [value, other] = [randomObject(random, schema), randomObject(random, schema)];
    const all = fieldsOf(value, schema);
    none(fieldsOf(removeFields(value, all, schema), schema), 'nothing that was owned is left');
    const gone = fieldsOf(other, schema);
    const rest = removeFields(value, gone, schema);
    none(intersection(fieldsOf(rest, schema), gone), 'nothing that was named is left');
    const { added, modified, removed } = compareFields(value, rest, schema);
    none(union(added, modified), 'nothing came or changed');
    same(
      differenceWithChildren(difference(fieldsOf(rest, schema), all), removed),
      NO_FIELDS,
      'the rest was there before',
    );
  }
});

test('a new object adds just the fields of another, if and only if a comparison says so', (t) => {
  const random = seededRandom(t);
  let [alike, unlike] = [0, 0];
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const [a, b] = [randomObject(random, schema), randomObject(random, schema)];
    const { added } = compareFields({}, a, schema);
    const expected = expectedOf(added, schema) ?? assert.fail('it is a map');
    assert.ok(addsJust(a, {}, expected), `its own: ${JSON.stringify(a)}`);
    const same = sameFields(compareFields({}, b, schema).added, added);
    assert.equal(addsJust(b, {}, expected), same, `${JSON.stringify(a)} and ${JSON.stringify(b)}`);
    if (same) alike++;
    else unlike++;
  }
  assert.ok(alike > 0 && unlike > 0);
});

test('what lost its last item is null instead of gone, and nothing else differs', (t) => {
  const random = seededRandom(t);
  for (let i = 0; i < RUNS; i++) {
    const schema = randomObjectSchema(random);
    const object = randomObject(random, schema);
    const gone = fieldsOf(randomObject(random, schema), schema);
    same(namedFieldsOf(object, schema), withNamedFields(fieldsOf(object, schema), schema), 'named in one go');
    const emptied = emptyFields(object, gone, schema);
    const kept = fieldsOf(removeFields(object, gone, schema), schema);
    none(difference(kept, fieldsOf(emptied, schema)), 'what stays stays');
    none(intersection(leavesOf(gone), leavesOf(difference(fieldsOf(emptied, schema), kept))), 'what goes goes');
  }
});
