import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, fault, callForValue, plain, testCalls } from '#cel/extensions/call.fixture.ts';
import { CelQuantity, quantityLibrary } from '#cel/kubernetes/quantity.ts';

function quantity(text: string): CelQuantity {
  const value = callForValue(quantityLibrary, 'quantity', [text]);
  assert.ok(value instanceof CelQuantity);
  return value;
}
const HUGE = '9999999999999999999999999999999999999G';

testCalls(quantityLibrary, {
  'isQuantity knows binary suffixes': ['isQuantity', ['20Mi'], true],
  'isQuantity refuses others': ['isQuantity', ['20Mo'], false],
  'quantity refuses what does not look like one': [
    'quantity',
    ['10Mo'],
    fault("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
  ],
  'quantity refuses suffixes that there are not': ['quantity', ['10Mm'], fault("unable to parse quantity's suffix")],
  'sign of less than nothing': ['sign', [quantity('-1m')], -1n],
  'sign of nothing': ['sign', [quantity('0')], 0n],
  'sign of more': ['sign', [quantity('1n')], 1n],
  'compareTo of equals': ['compareTo', [quantity('200M'), quantity('0.2G')], 0n],
  'compareTo of less': ['compareTo', [quantity('50M'), quantity('50Mi')], -1n],
  'compareTo of more': ['compareTo', [quantity('50Mi'), quantity('50M')], 1n],
  isGreaterThan: ['isGreaterThan', [quantity('150Mi'), quantity('100Mi')], true],
  'isGreaterThan of an equal': ['isGreaterThan', [quantity('1k'), quantity('1000')], false],
  isLessThan: ['isLessThan', [quantity('50M'), quantity('100M')], true],
  'isLessThan is exact where doubles are not': [
    'isLessThan',
    [quantity('9007199254740992'), quantity('9007199254740993')],
    true,
  ],
  'asInteger of a round one': ['asInteger', [quantity('50k')], 50_000n],
  'asInteger of a large one': ['asInteger', [quantity('9223372036G')], 9_223_372_036_000_000_000n],
  'asInteger of what does not fit': ['asInteger', [quantity(HUGE)], fault('cannot convert value to integer')],
  'isInteger of what does not fit': ['isInteger', [quantity('9223372037G')], false],
  'isInteger of a whole one': ['isInteger', [quantity('50')], true],
  'isInteger of binary ones': ['isInteger', [quantity('64Gi')], true],
  'isInteger of a fraction': ['isInteger', [quantity('1.5')], false],
  'isInteger of milli ones that make a whole, as in Kubernetes': ['isInteger', [quantity('1000m')], false],
  'isInteger of binary ones that Go holds as decimals': ['isInteger', [quantity('1Pi')], false],
  asApproximateFloat: ['asApproximateFloat', [quantity('50.703k')], 50_703],
  'asApproximateFloat of a fraction': ['asApproximateFloat', [quantity('100m')], 0.1],
  'asApproximateFloat of a huge one': ['asApproximateFloat', [quantity(HUGE)], 1e46],
});

test('arithmetic is exact', () => {
  const cases: Record<string, [string, CelQuantity | bigint, string, string]> = {
    'a quantity and another': ['add', quantity('20'), '50k', '50.02k'],
    'a quantity and an int': ['add', 20n, '50k', '50020'],
    'less another': ['sub', quantity('20'), '50k', '49.98k'],
    'less an int': ['sub', -50_000n, '-50k', '0'],
    'huge ones': ['add', quantity('1n'), HUGE, `${HUGE.slice(0, -1)}000000000.000000001`],
  };
  for (const [sentence, [name, other, from, want]] of Object.entries(cases)) {
    const result = call(quantityLibrary, name, [quantity(from), other]);
    assert.ok(result instanceof CelQuantity && result.equals(quantity(want)), sentence);
  }
});

test('a sum is an integer where Go says so', () => {
  const sum = (a: string, b: CelQuantity | bigint) => callForValue(quantityLibrary, 'add', [quantity(a), b]);
  const asInteger = (value: ReturnType<typeof sum>) => plain(call(quantityLibrary, 'asInteger', [value]));
  assert.equal(asInteger(sum('50k', 20n)), 50_020n);
  assert.equal(asInteger(sum('0', quantity('5Gi'))), 5_368_709_120n);
  assert.deepEqual(asInteger(sum('500m', quantity('500m'))), fault('cannot convert value to integer'));
  assert.deepEqual(asInteger(sum('9223372036854775807', 1n)), fault('cannot convert value to integer'));
  assert.equal(asInteger(sum('0', 9_223_372_036_854_775_807n)), 9_223_372_036_854_775_807n);
});
