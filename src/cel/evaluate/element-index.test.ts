import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { ruleType } from '#cel/check/schema-type.ts';
import { compile } from '#cel/compile.ts';
import { withVariables } from '#cel/environment.ts';
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { BOOL } from '#cel/type.ts';
import type { Schema } from '#kube/schema.ts';

const string: Schema = { type: 'string' };
const set: Schema = { type: 'array', 'x-kubernetes-list-type': 'set', items: string };
const atoms: Schema = {
  type: 'array',
  'x-kubernetes-list-type': 'set',
  items: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { a: string, b: string } },
};
const map: Schema = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['k'],
  items: { type: 'object', properties: { k: string, v: { type: 'integer' } } },
};
const plain: Schema = { type: 'array', items: string };

const cases: Record<string, { schema: Schema; self: unknown; old: unknown; rule: string; want: boolean }> = {
  'sets ignore the order': { schema: set, self: ['a', 'b'], old: ['b', 'a'], rule: 'self == oldSelf', want: true },
  'sets with different elements are not equal': {
    schema: set,
    self: ['a', 'b'],
    old: ['a', 'c'],
    rule: 'self == oldSelf',
    want: false,
  },
  'plain lists respect the order': {
    schema: plain,
    self: ['a', 'b'],
    old: ['b', 'a'],
    rule: 'self == oldSelf',
    want: false,
  },
  'sets of objects compare all fields': {
    schema: atoms,
    self: [{ a: '1', b: '2' }, { a: '3' }],
    old: [{ a: '3' }, { b: '2', a: '1' }],
    rule: 'self == oldSelf',
    want: true,
  },
  'list maps are compared by their keys': {
    schema: map,
    self: [
      { k: 'a', v: 1 },
      { k: 'b', v: 2 },
    ],
    old: [
      { k: 'b', v: 2 },
      { k: 'a', v: 1 },
    ],
    rule: 'self == oldSelf',
    want: true,
  },
  'list maps with different values are not equal': {
    schema: map,
    self: [
      { k: 'a', v: 1 },
      { k: 'b', v: 2 },
    ],
    old: [
      { k: 'b', v: 3 },
      { k: 'a', v: 1 },
    ],
    rule: 'self == oldSelf',
    want: false,
  },
  'adding sets returns their union': {
    schema: set,
    self: ['a', 'b'],
    old: ['b', 'c'],
    rule: "(self + oldSelf).map(x, x) == ['a', 'b', 'c'] && self + oldSelf == ['c', 'a', 'b']",
    want: true,
  },
  'adding list maps takes the values of the second': {
    schema: map,
    self: [
      { k: 'a', v: 1 },
      { k: 'b', v: 2 },
    ],
    old: [
      { k: 'c', v: 3 },
      { k: 'a', v: 4 },
    ],
    rule: '(self + oldSelf).map(x, x.v) == [4, 2, 3]',
    want: true,
  },
};

test('associative lists', async (t) => {
  for (const [name, { schema, self, old, rule, want }] of Object.entries(cases)) {
    await t.test(name, () => {
      const type = ruleType(schema, 'selfType', false)!;
      const program = compile(rule, withVariables(kubernetesEnvironment, { self: type, oldSelf: type }), {
        expect: [BOOL],
      });
      assert.ok(!('failure' in program), 'failure' in program ? program.failure : '');
      const values = new Map([
        ['self', adaptJson(self, schema)],
        ['oldSelf', adaptJson(old, schema)],
      ]);
      assert.equal(
        program.evaluate((variable) => values.get(variable), new Budget(10_000)),
        want,
      );
    });
  }
});
