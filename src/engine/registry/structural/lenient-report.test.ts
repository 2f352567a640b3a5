import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileValidator } from '#engine/registry/structural/validate.ts';
import type { Schema } from '#kube/schema.ts';

const small: Schema = { type: 'integer', maximum: 5 };
const schema: Schema = {
  type: 'object',
  properties: {
    kind: { type: 'string', maxLength: 3 },
    spec: {
      type: 'object',
      required: ['must'],
      properties: {
        must: small,
        other: small,
        atomic: { type: 'array', items: small },
        mapped: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
          items: { type: 'object', properties: { k: { type: 'string' }, v: small } },
        },
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
        chosen: { type: 'object', properties: { a: small, b: small }, anyOf: [{ properties: { a: { maximum: 2 } } }] },
        inner: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  },
};
const { validateUpdate } = compileValidator(schema, { uniqueLists: true });

const OVER = (field: string, value: number) =>
  `${field}: Invalid value: ${value}: ${field} in body should be less than or equal to 5`;

const cases: Record<string, { old: object; next: object; want: string[] }> = {
  'ignores errors in an unchanged value': { old: { must: 9, other: 1 }, next: { must: 9, other: 2 }, want: [] },
  'reports errors in a changed value': { old: { must: 9 }, next: { must: 8 }, want: [OVER('spec.must', 8)] },
  'reports errors in a new value': { old: { must: 1 }, next: { must: 1, other: 9 }, want: [OVER('spec.other', 9)] },
  'ignores a missing field of an unchanged object': { old: { other: 1 }, next: { other: 1 }, want: [] },
  'reports a missing field of a changed object': {
    old: { other: 1 },
    next: { other: 2 },
    want: ['spec.must: Required value'],
  },
  'correlates items of a map list by their keys': {
    old: {
      must: 1,
      mapped: [
        { k: 'a', v: 9 },
        { k: 'b', v: 9 },
      ],
    },
    next: {
      must: 1,
      mapped: [
        { k: 'b', v: 8 },
        { k: 'a', v: 9 },
      ],
    },
    want: [OVER('spec.mapped[0].v', 8)],
  },
  'correlates items of other lists only as a whole': {
    old: { must: 1, atomic: [9] },
    next: { must: 1, atomic: [9, 1] },
    want: [OVER('spec.atomic[0]', 9)],
  },
  'ignores errors in an unchanged list': { old: { must: 1, atomic: [9] }, next: { must: 2, atomic: [9] }, want: [] },
  'ignores duplicates if there were some before': {
    old: { must: 1, set: ['a', 'a'] },
    next: { must: 1, set: ['a', 'a', 'b', 'b'] },
    want: [],
  },
  'reports duplicates if there were none before': {
    old: { must: 1, set: ['a'] },
    next: { must: 1, set: ['a', 'a'] },
    want: ['spec.set[1]: Duplicate value: "a"'],
  },
  'reports errors inside anyOf of a changed value': {
    old: { must: 1, chosen: { a: 4, b: 1 } },
    next: { must: 1, chosen: { a: 4, b: 2 } },
    want: [
      '<nil>: Invalid value: "": "spec.chosen" must validate at least one schema (anyOf)',
      'spec.chosen.a: Invalid value: 4: spec.chosen.a in body should be less than or equal to 2',
    ],
  },
  'ignores an unchanged value that matches no alternative': {
    old: { must: 1, chosen: { a: 4 } },
    next: { must: 2, chosen: { a: 4 } },
    want: [],
  },
  'reports errors in embedded resources': {
    old: { must: 1, inner: { kind: 'A' } },
    next: { must: 1, inner: { kind: 'A' } },
    want: ['spec.inner.apiVersion: Required value: must not be empty'],
  },
};

test('an update is validated only for what it changes', async (t) => {
  for (const [name, { old, next, want }] of Object.entries(cases)) {
    await t.test(name, () => {
      const errors = validateUpdate({ spec: next }, { spec: old });
      assert.deepEqual(
        errors.map(({ field, message }) => `${field}: ${message}`),
        want,
      );
    });
  }
  await t.test('kind and apiVersion count as unchanged', () => {
    assert.equal(validateUpdate({ kind: 'Long', spec: { must: 1 } }, { kind: 'Long', spec: { must: 2 } }).length, 1);
  });
});
