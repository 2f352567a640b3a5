import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, fault, callForValue, plain, testCalls } from '#cel/extensions/testing/call.ts';
import { CelQuantity, quantityLibrary } from '#cel/kubernetes/quantity.ts';

function quantity(text: string): CelQuantity {
  const value = callForValue(quantityLibrary, 'quantity', [text]);
  assert.ok(value instanceof CelQuantity);
  return value;
}
const HUGE = '9999999999999999999999999999999999999G';

testCalls(quantityLibrary, {
  'isQuantity accepts binary suffixes': ['isQuantity', ['20Mi'], true],
  'isQuantity rejects unknown suffixes': ['isQuantity', ['20Mo'], false],
  'quantity rejects text that is not a quantity': [
    'quantity',
    ['10Mo'],
    fault("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
  ],
  'quantity rejects unknown suffixes': ['quantity', ['10Mm'], fault("unable to parse quantity's suffix")],
  'sign of a negative quantity': ['sign', [quantity('-1m')], -1n],
  'sign of zero': ['sign', [quantity('0')], 0n],
  'sign of a positive quantity': ['sign', [quantity('1n')], 1n],
  'compareTo of equal quantities': ['compareTo', [quantity('200M'), quantity('0.2G')], 0n],
  'compareTo of a smaller quantity': ['compareTo', [quantity('50M'), quantity('50Mi')], -1n],
  'compareTo of a larger quantity': ['compareTo', [quantity('50Mi'), quantity('50M')], 1n],
  isGreaterThan: ['isGreaterThan', [quantity('150Mi'), quantity('100Mi')], true],
  'isGreaterThan of an equal': ['isGreaterThan', [quantity('1k'), quantity('1000')], false],
  isLessThan: ['isLessThan', [quantity('50M'), quantity('100M')], true],
  'isLessThan is exact where doubles are not': [
    'isLessThan',
    [quantity('9007199254740992'), quantity('9007199254740993')],
    true,
  ],
  'asInteger of a round quantity': ['asInteger', [quantity('50k')], 50_000n],
  'asInteger of a large quantity': ['asInteger', [quantity('9223372036G')], 9_223_372_036_000_000_000n],
  'asInteger of a quantity beyond 64 bits is a fault': [
    'asInteger',
    [quantity(HUGE)],
    fault('cannot convert value to integer'),
  ],
  'isInteger of a quantity beyond 64 bits': ['isInteger', [quantity('9223372037G')], false],
  'isInteger of a whole quantity': ['isInteger', [quantity('50')], true],
  'isInteger of a binary quantity': ['isInteger', [quantity('64Gi')], true],
  'isInteger of a fraction': ['isInteger', [quantity('1.5')], false],
  'isInteger of a whole number in milli units, as in Kubernetes': ['isInteger', [quantity('1000m')], false],
  'isInteger of a binary quantity that Go represents as a decimal': ['isInteger', [quantity('1Pi')], false],
  asApproximateFloat: ['asApproximateFloat', [quantity('50.703k')], 50_703],
  'asApproximateFloat of a fraction': ['asApproximateFloat', [quantity('100m')], 0.1],
  'asApproximateFloat of a huge quantity': ['asApproximateFloat', [quantity(HUGE)], 1e46],
});

test('arithmetic is exact', () => {
  const cases: Record<string, [string, CelQuantity | bigint, string, string]> = {
    'adding a quantity': ['add', quantity('20'), '50k', '50.02k'],
    'adding an int': ['add', 20n, '50k', '50020'],
    'subtracting a quantity': ['sub', quantity('20'), '50k', '49.98k'],
    'subtracting an int': ['sub', -50_000n, '-50k', '0'],
    'adding huge quantities': ['add', quantity('1n'), HUGE, `${HUGE.slice(0, -1)}000000000.000000001`],
  };
  for (const [sentence, [name, other, from, want]] of Object.entries(cases)) {
    const result = call(quantityLibrary, name, [quantity(from), other]);
    assert.ok(result instanceof CelQuantity && result.equals(quantity(want)), sentence);
  }
});

test('isInteger of a sum is the same as in Go', () => {
  const sum = (a: string, b: CelQuantity | bigint) => callForValue(quantityLibrary, 'add', [quantity(a), b]);
  const asInteger = (value: ReturnType<typeof sum>) => plain(call(quantityLibrary, 'asInteger', [value]));
  assert.equal(asInteger(sum('50k', 20n)), 50_020n);
  assert.equal(asInteger(sum('0', quantity('5Gi'))), 5_368_709_120n);
  assert.deepEqual(asInteger(sum('500m', quantity('500m'))), fault('cannot convert value to integer'));
  assert.deepEqual(asInteger(sum('9223372036854775807', 1n)), fault('cannot convert value to integer'));
  assert.equal(asInteger(sum('0', 9_223_372_036_854_775_807n)), 9_223_372_036_854_775_807n);
});
