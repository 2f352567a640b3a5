import assert from 'node:assert/strict';
import test, { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { ApiError, isApiError } from '#kube/api-error.ts';
import {
  formatLabelSelector,
  type LabelOperator,
  type LabelRequirement,
  labelRequirementsOf,
  matchesLabels,
  parseLabelSelector,
} from '#kube/selectors/label-selector.ts';

const good: Record<string, [string, LabelOperator, string[]][]> = {
  '': [],
  '  ': [],
  a: [['a', 'exists', []]],
  '!a': [['a', '!exists', []]],
  '! a , b': [
    ['a', '!exists', []],
    ['b', 'exists', []],
  ],
  'a=b': [['a', '=', ['b']]],
  'a == b': [['a', '=', ['b']]],
  'a=': [['a', '=', ['']]],
  'a!=b': [['a', '!=', ['b']]],
  'a=,b': [
    ['a', '=', ['']],
    ['b', 'exists', []],
  ],
  'x/y in (c, a,a)': [['x/y', 'in', ['a', 'c']]],
  'a in ()': [['a', 'in', ['']]],
  'a notin (,b)': [['a', 'notin', ['', 'b']]],
  'a in (b,)': [['a', 'in', ['', 'b']]],
  'in in (in,notin)': [['in', 'in', ['in', 'notin']]],
  'n>10': [['n', '>', ['10']]],
  'b,a': [
    ['a', 'exists', []],
    ['b', 'exists', []],
  ],
};

for (const [text, want] of Object.entries(good)) {
  test(`parses ${JSON.stringify(text)}`, () => {
    const parsed = parseLabelSelector(text).map(({ key, operator, values }) => [key, operator, values]);
    assert.deepEqual(parsed, want);
  });
}

const QUALIFIED =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const bad: Record<string, string> = {
  'a===b': "unable to parse requirement: found '=', expected: identifier",
  '=b': "found '=', expected: !, identifier, or 'end of string'",
  'a,': "found '', expected: identifier after ','",
  'a,,b': "found ',', expected: identifier after ','",
  '!': "unable to parse requirement: found '', expected: identifier",
  '!a=b': "found '=', expected: ',' or 'end of string'",
  'a=b c': "found 'c', expected: ',' or 'end of string'",
  'a b': "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
  'a in b': "unable to parse requirement: found 'b' expected: '('",
  'a in (': "unable to parse requirement: found '', expected: ',', ')' or identifier",
  'a in (b': "unable to parse requirement: found '', expected: ',' or ')'",
  'a in (b,=)': "unable to parse requirement: found '=', expected: ',', or identifier",
  'a in (b c)': "unable to parse requirement: found 'c', expected: ',' or ')'",
  'a=(b)': "unable to parse requirement: found '(', expected: identifier",
  _a: `unable to parse requirement: <nil>: Invalid value: "_a": ${QUALIFIED}`,
  'a=_b': `unable to parse requirement: values[0][a]: Invalid value: "_b": ${VALUE}`,
  'a>b': `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`,
  'a>9223372036854775808': `unable to parse requirement: values[0]: Invalid value: "9223372036854775808": for 'Gt', 'Lt' operators, the value must be an integer`,
  'a in (_b,_c)': `unable to parse requirement: [values[0][a]: Invalid value: "_b": ${VALUE}, values[1][a]: Invalid value: "_c": ${VALUE}]`,
};

for (const [text, message] of Object.entries(bad)) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    try {
      parseLabelSelector(text);
    } catch (error) {
      assert.ok(isApiError(error, 'BadRequest'));
      assert.equal(error.message, message);
      return;
    }
    assert.fail('the selector was accepted');
  });
}

test('converts the object form, sorted by key', () => {
  const selector = {
    matchLabels: { z: '1', a: '' },
    matchExpressions: [
      { key: 'm', operator: 'In', values: ['x', 'y'] },
      { key: 'n', operator: 'DoesNotExist' },
    ],
  };
  assert.equal(formatLabelSelector(labelRequirementsOf(selector)), 'a=,m in (x,y),!n,z=1');
  assert.deepEqual(labelRequirementsOf({}), []);
});

const badObjects: Record<string, [Parameters<typeof labelRequirementsOf>[0], string]> = {
  'an unknown operator': [
    { matchExpressions: [{ key: 'a', operator: 'toString' }] },
    '"toString" is not a valid label selector operator',
  ],
  'a set without values': [
    { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] },
    "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
  ],
  'values for an operator that takes none': [
    { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
    'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
  ],
};

for (const [sentence, [selector, message]] of Object.entries(badObjects)) {
  test(`refuses ${sentence}`, () => {
    assert.throws(() => labelRequirementsOf(selector), { message });
  });
}

const key = fc.constantFrom('a', 'b', 'in', 'notin', 'x.io/c', 'constructor');
const value = fc.constantFrom('', '1', '2', '-3', '10', 'in', 'v', '9007199254740993');
const set = fc.uniqueArray(value, { minLength: 1, maxLength: 3 }).map((values) => values.sort());
const integer = fc.constantFrom('-1', '2', '10', '9007199254740992').map((text) => [text]);
const requirement: fc.Arbitrary<LabelRequirement> = fc.oneof(
  fc.record({ key, operator: fc.constantFrom('=' as const, '!=' as const), values: value.map((text) => [text]) }),
  fc.record({ key, operator: fc.constantFrom('in' as const, 'notin' as const), values: set }),
  fc.record({ key, operator: fc.constantFrom('exists' as const, '!exists' as const), values: fc.constant([]) }),
  fc.record({ key, operator: fc.constantFrom('>' as const, '<' as const), values: integer }),
);
// The value of a label starts with a letter or digit, so a negative number can be matched but not parsed.
const parsable = requirement.filter(({ values }) => !values.some((text) => text.startsWith('-')));

test('parses a formatted selector to the same requirements', () => {
  fc.assert(
    fc.property(fc.array(parsable, { maxLength: 5 }), (requirements) => {
      const sorted = requirements.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
      assert.equal(
        JSON.stringify(parseLabelSelector(formatLabelSelector(requirements)).map(fields)),
        JSON.stringify(sorted.map(fields)),
      );
    }),
  );
});

const fields = ({ key: name, operator, values }: LabelRequirement) => [name, operator, values];

/** A simple implementation of the documented rules. */
function naive({ key: name, operator, values }: LabelRequirement, labels: Record<string, string>): boolean {
  const found = Object.entries(labels).filter(([label]) => label === name);
  const inSet = found.some(([, label]) => values.some((wanted) => wanted === label));
  const number = /^-?\d+$/.test(found[0]?.[1] ?? '') ? BigInt(found[0]?.[1] ?? 0) : undefined;
  const rules: Record<LabelOperator, () => boolean> = {
    '=': () => inSet,
    in: () => inSet,
    '!=': () => !inSet,
    notin: () => !inSet,
    exists: () => found.length === 1,
    '!exists': () => found.length === 0,
    '>': () => number !== undefined && number > BigInt(values[0] ?? 0),
    '<': () => number !== undefined && number < BigInt(values[0] ?? 0),
  };
  return rules[operator]();
}

test('matches the same labels as a naive evaluator', () => {
  const labels = fc.dictionary(key, value, { maxKeys: 4 });
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), labels, (requirements, found) => {
      const want = requirements.every((item) => naive(item, found));
      assert.equal(matchesLabels(requirements, found), want);
    }),
    { numRuns: 500 },
  );
});

test('matches an object without labels only by absence', () => {
  assert.equal(matchesLabels(parseLabelSelector('!a,b!=c'), undefined), true);
  assert.equal(matchesLabels(parseLabelSelector('a'), undefined), false);
  assert.equal(matchesLabels(parseLabelSelector('toString'), {}), false);
});

test('refuses garbage with a 400 only', () => {
  const garbage = fc.string({ unit: fc.constantFrom('a', 'in', ' ', '=', '!', '(', ')', ',', '<', '\0', 'é', '/') });
  fc.assert(
    fc.property(garbage, (text) => {
      try {
        parseLabelSelector(text);
      } catch (error) {
        assert.ok(error instanceof ApiError && error.code === 400, String(error));
      }
    }),
  );
});

describe('a long selector matches like its requirements one by one', () => {
  const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
  const filler = keys.map((key) => `${key}!=x`).join(',');
  const selectors = [
    'a',
    '!a',
    'a=1',
    'a!=1',
    'a in (1,2),a in (2,3)',
    'a notin (1,2)',
    'a>1',
    'a<1,a>0',
    'a=1,!a',
    'k3=y',
  ];
  const labels: (Record<string, string> | undefined)[] = [
    undefined,
    {},
    { a: '1' },
    { a: '2', k3: 'y' },
    { a: 'x', k3: 'x' },
    { k3: 'y' },
    { b: '1' },
  ];
  for (const selector of selectors) {
    it(selector, () => {
      const short = parseLabelSelector(selector);
      const long = parseLabelSelector(`${selector},${filler}`);
      for (const one of labels) {
        const want = matchesLabels(short, one) && keys.every((key) => one?.[key] !== 'x');
        assert.equal(matchesLabels(long, one), want, JSON.stringify(one));
      }
    });
  }

  it('with the strictest of many bounds', () => {
    const bounds = Array.from({ length: 50 }, (_, i) => `a<${100 + i},a>${i}`);
    const long = parseLabelSelector(bounds.join(','));
    const cases: Record<string, boolean> = { 49: false, 50: true, 99: true, 100: false, x: false };
    for (const [a, want] of Object.entries(cases)) assert.equal(matchesLabels(long, { a }), want, a);
  });

  it('and evaluates one of many bounds', () => {
    const bounds = Array.from({ length: 4000 }, (_, i) => ({ key: 'a', operator: '<', values: [String(10_000 + i)] }));
    let read = 0;
    const counted = bounds.map(({ values, ...one }) => ({
      ...one,
      get values() {
        read++;
        return values;
      },
    })) as readonly LabelRequirement[];
    matchesLabels(counted, { a: '1' });
    read = 0;
    matchesLabels(counted, { a: '1' });
    assert.ok(read <= 1, `${read} bounds were read`);
  });

  it('in time that depends on the labels', () => {
    const long = parseLabelSelector(Array.from({ length: 10_000 }, (_, i) => `k${i}!=x`).join(','));
    let read = 0;
    const held: Record<string, string> = { a: 'b' };
    const labels = new Proxy(held, { get: (target, key) => ((read += 1), target[key as string]) });
    assert.equal(matchesLabels(long, labels), true);
    assert.ok(read <= 1, `${read} reads`);
  });
});
