import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ruleType } from '#cel/check/schema-type.ts';
import { compile } from '#cel/compile.ts';
import { withVariables } from '#cel/environment.ts';
import { estimateCost } from '#cel/estimate/estimate-cost.ts';
import { estimateSizes } from '#cel/estimate/schema-sizes.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { BOOL } from '#cel/type.ts';
import type { Schema } from '#kube/schema.ts';

function estimate(schema: Schema, rule: string): number {
  const self = ruleType(schema, 'selfType', false)!;
  const environment = withVariables(kubernetesEnvironment, { self, oldSelf: self });
  const program = compile(rule, environment, { expect: [BOOL], annotate: true });
  assert.ok(!('failure' in program), 'failure' in program ? program.failure : '');
  return estimateCost(program.checked!, estimateSizes(schema, false)!);
}

const number: Schema = { type: 'number' };
const string: Schema = { type: 'string' };
const boolean: Schema = { type: 'boolean' };
const either: Schema = { 'x-kubernetes-int-or-string': true };
const text = (format: string): Schema => ({ type: 'string', format });
const named: Schema = { type: 'object', required: ['required'], properties: { required: string, optional: string } };

/** Returns a schema with or without a bound. */
type Bounded = (most: number | undefined) => Schema;
const bound = (key: 'maxItems' | 'maxProperties' | 'maxLength', most: number | undefined) =>
  most === undefined ? {} : { [key]: most };
const list =
  (items: Schema): Bounded =>
  (most) => ({ type: 'array', items, ...bound('maxItems', most) });
const map =
  (values: Schema): Bounded =>
  (most) => ({
    type: 'object',
    additionalProperties: values,
    ...bound('maxProperties', most),
  });
const limited =
  (schema: Schema): Bounded =>
  (most) => ({ ...schema, ...bound('maxLength', most) });
const listOfLimited = (most: number | undefined): Schema => list(limited(string)(most))(most);
const mapOfLimited = (most: number | undefined): Schema => map(limited(string)(most))(most);
const replacing: Bounded = (most) => ({
  type: 'object',
  properties: { str: limited(string)(most), before: limited(string)(most), after: limited(string)(most) },
});

interface Case {
  readonly schema: Bounded;
  readonly rule: string;
  /** The estimate of Kubernetes 1.32, without and with a bound. */
  readonly unbounded?: number;
  readonly most: number;
  readonly bounded: number;
}

const cases: Record<string, Case> = {
  'all of a list of numbers': {
    schema: list(number),
    rule: 'self.all(x, true)',
    unbounded: 4718591,
    most: 10,
    bounded: 32,
  },
  'all of a list of strings': {
    schema: list(string),
    rule: 'self.all(x, true)',
    unbounded: 3145727,
    most: 20,
    bounded: 62,
  },
  'all of a list of booleans': {
    schema: list(boolean),
    rule: 'self.all(x, true)',
    unbounded: 1887437,
    most: 5,
    bounded: 17,
  },
  'all of a list of lists': {
    schema: list({ type: 'array', items: number }),
    rule: 'self.all(x, true)',
    unbounded: 3145727,
    most: 100,
    bounded: 302,
  },
  'all of a list of objects': {
    schema: list(named),
    rule: 'self.all(x, true)',
    unbounded: 555128,
    most: 50,
    bounded: 152,
  },
  'all of a map of numbers': {
    schema: map(number),
    rule: 'self.all(x, true)',
    unbounded: 1348169,
    most: 10,
    bounded: 32,
  },
  'has() costs only its variable': {
    schema: map(number),
    rule: 'has(self.x)',
    unbounded: 1,
    most: 100,
    bounded: 1,
  },
  'all of a map of booleans': {
    schema: map(boolean),
    rule: 'self.all(x, true)',
    unbounded: 943718,
    most: 100,
    bounded: 302,
  },
  'contains() on a string': {
    schema: limited(string),
    rule: "self.contains('test')",
    unbounded: 314574,
    most: 10,
    bounded: 5,
  },
  'startsWith() on a string': {
    schema: limited(string),
    rule: "self.startsWith('test')",
    unbounded: 2,
    most: 15,
    bounded: 2,
  },
  'adding strings': {
    schema: limited(string),
    rule: 'size(self + "hello") > size("hello")',
    unbounded: 314578,
    most: 4,
    bounded: 7,
  },
  'an item of a list of numbers': {
    schema: list(number),
    rule: 'self[1] == 0.0',
    unbounded: 2,
    most: 5000,
    bounded: 2,
  },
  'an item of a list of strings': {
    schema: list(string),
    rule: 'self[1] == self[1]',
    unbounded: 314577,
    most: 8,
    bounded: 314577,
  },
  'a nested loop': { schema: list(number), rule: 'self.all(x, self.all(y, true))', most: 10, bounded: 352 },
  'three nested loops': {
    schema: list(number),
    rule: 'self.all(x, self.all(y, self.all(z, true)))',
    most: 10,
    bounded: 3552,
  },
  'a regular expression': {
    schema: limited(string),
    rule: 'self.matches("x")',
    unbounded: 314574,
    most: 50,
    bounded: 22,
  },
  'a regular expression and an empty string': {
    schema: limited(string),
    rule: '"".matches("(((((((((())))))))))[0-9]")',
    unbounded: 7,
    most: 10,
    bounded: 7,
  },
  'an empty regular expression': {
    schema: limited(string),
    rule: 'self.matches("")',
    unbounded: 1,
    most: 100,
    bounded: 1,
  },
  'looking up the values of keys': {
    schema: mapOfLimited,
    rule: 'self.all(x, x.contains(self[x]))',
    unbounded: 2752507,
    most: 10,
    bounded: 72,
  },
  'a string with maxLength 0': { schema: limited(string), rule: 'self == "x"', unbounded: 2, most: 0, bounded: 1 },
  'bytes with maxLength 0': { schema: limited(text('byte')), rule: 'self == b"x"', unbounded: 2, most: 0, bounded: 1 },
  'a bound beyond the request limit': {
    schema: list(number),
    rule: 'self.all(x, x == 0.0)',
    unbounded: 6291454,
    most: 3 * 1024 * 2048,
    bounded: 25165826,
  },
  'all of a list of int-or-strings': {
    schema: list(either),
    rule: 'self.all(x, true)',
    unbounded: 4718591,
    most: 10,
    bounded: 32,
  },
  'an int-or-string': { schema: list(either), rule: 'self[0] == 5', unbounded: 3, most: 10, bounded: 3 },
  'an item of a nested list': {
    schema: list({ type: 'array', items: number }),
    rule: 'self[0][0] == -1.0',
    unbounded: 3,
    most: 51,
    bounded: 3,
  },
  'entries of items': {
    schema: list({ type: 'object', additionalProperties: number }),
    rule: 'self.all(x, x.y == 25.2)',
    unbounded: 6291452,
    most: 12,
    bounded: 74,
  },
  'all of a list of durations': {
    schema: list(text('duration')),
    rule: 'self.all(x, true)',
    unbounded: 2359295,
    most: 5,
    bounded: 17,
  },
  'a duration': {
    schema: list(text('duration')),
    rule: 'self[0].getHours() == 2',
    unbounded: 4,
    most: 525,
    bounded: 4,
  },
  'all of a list of dates': {
    schema: list(text('date')),
    rule: 'self.all(x, true)',
    unbounded: 725936,
    most: 15,
    bounded: 47,
  },
  'all of a list of times': {
    schema: list(text('date-time')),
    rule: 'self.all(x, true)',
    unbounded: 428963,
    most: 25,
    bounded: 77,
  },
  find: { schema: limited(string), rule: "self.find('[0-9]+') == ''", unbounded: 629147, most: 10, bounded: 11 },
  join: { schema: listOfLimited, rule: "self.join(' ') == 'aa bb'", unbounded: 329853068905, most: 10, bounded: 43 },
  isSorted: { schema: listOfLimited, rule: 'self.isSorted() == true', unbounded: 329854432052, most: 10, bounded: 52 },
  replace: {
    schema: replacing,
    rule: "self.str.replace(self.before, self.after) == 'does not matter'",
    unbounded: 629154,
    most: 4,
    bounded: 12,
  },
  lowerAscii: {
    schema: limited(string),
    rule: "self.lowerAscii() == 'lower!'",
    unbounded: 314575,
    most: 10,
    bounded: 6,
  },
  sizes: {
    schema: map({ type: 'integer' }),
    rule: 'oldSelf.size() == self.size()',
    unbounded: 5,
    most: 10,
    bounded: 5,
  },
};

test('cost estimates equal those of Kubernetes', async (t) => {
  for (const [name, { schema, rule, unbounded, most, bounded }] of Object.entries(cases)) {
    await t.test(name, () => {
      if (unbounded !== undefined) assert.equal(estimate(schema(undefined), rule), unbounded);
      assert.equal(estimate(schema(most), rule), bounded);
    });
  }
});
