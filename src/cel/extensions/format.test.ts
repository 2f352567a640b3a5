import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import type { CallCase } from '#cel/extensions/testing/call.ts';
import { call, fault, list, map, testCalls, uint } from '#cel/extensions/testing/call.ts';
import { stringsLibrary } from '#cel/extensions/strings.ts';
import { plainFormatLibrary } from '#cel/extensions/testing/format-plain.ts';
import { STRING } from '#cel/type.ts';
import { CelDuration, CelOptional, CelTimestamp, CelTypeValue } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const format = (template: string, args: CelValue[], want: unknown): CallCase => [
  'format',
  [template, list(...args)],
  want,
];
const bytes = new TextEncoder().encode('xyz');
const timestamp = new CelTimestamp(1_675_467_080_000_000_000n);
const duration = new CelDuration(7_200_000_000_000n);
const during = (problem: string) => fault(`error during formatting: ${problem}`);
const clauseError = (problem: string) => fault(`could not parse formatting clause: ${problem}`);

const everywhere: Record<string, CallCase> = {
  'text without clauses is unchanged': format('no substitution', [], 'no substitution'),
  'two percent signs are one': format('%% and %s%%', ['x'], '% and x%'),
  'clauses take arguments in order': format('%d %s, %d', [1n, 'A', 2n], '1 A, 2'),
  'binary of an int': format('%b %b', [5n, -5n], '101 -101'),
  'binary of a uint and of bools': format('%b %b %b', [uint(64n), true, false], '1000000 1 0'),
  'octal of ints': format('%o %o', [-11n, uint(65_535n)], '-13 177777'),
  'hex of ints': format('%x %X %x', [30n, uint(6000n), -30n], '1e 1770 -1e'),
  'hex of a text': format('%x', ['Hello world!'], '48656c6c6f20776f726c6421'),
  'hex of bytes': format('%X', [bytes], '78797A'),
  'decimal of ints': format('%d %d', [-1n, uint(64n)], '-1 64'),
  'fixed with its digits': format('%.3f', [1.2345], '1.234'),
  'fixed rounds halves to even': format('%.0f %.0f %.0f', [1.5, 2.5, 3.5001], '2 2 4'),
  'fixed of six digits': format('%f', [2.71], '2.710000'),
  'fixed of a negative': format('%.5f', [-1.2], '-1.20000'),
  'text of scalars': format('%s %s %s %s', ['a', true, 7n, uint(8n)], 'a true 7 8'),
  'text of null, bytes and a type': format(
    '%s %s %s',
    [null, bytes, new CelTypeValue('string', STRING)],
    'null xyz string',
  ),
  'text of a time': format('%s', [timestamp], '2023-02-03T23:31:20Z'),
  'text of a duration': format('%s', [duration], '7200s'),
  'text of a double': format('%s', [56.8], '56.8'),

  'an unknown clause is a fault': format('%a', [1n], clauseError('unrecognized formatting clause "a"')),
  'the scientific clause has no upper-case form': format(
    '%E',
    [0.5],
    clauseError('unrecognized formatting clause "E"'),
  ),
  'too few arguments are a fault': format('%d %d', [0n], fault('index 1 out of range')),
  'a lone percent sign at the end is a fault': format('a%', [1n], fault('unexpected end of string')),
  'a precision must end': format(
    '%.3',
    [1],
    clauseError('error while parsing precision: could not find end of precision specifier'),
  ),
  'a precision must have digits': format(
    '%.f',
    [1],
    clauseError(
      'error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
    ),
  ),
  'a precision is bounded': format(
    '%.9999999f',
    [1],
    clauseError('error while parsing precision: precision 9999999 exceeds maximum allowed precision 100'),
  ),
  'binary rejects text': format(
    '%b',
    ['abc'],
    during('only integers and bools can be formatted as binary, was given string'),
  ),
  'decimal rejects durations': format(
    '%d',
    [duration],
    during('decimal clause can only be used on integers, was given google.protobuf.Duration'),
  ),
  'octal rejects text': format('%o', ['a'], during('octal clause can only be used on integers, was given string')),
  'hex rejects doubles': format(
    '%x',
    [0.5],
    during('only integers, byte buffers, and strings can be formatted as hex, was given double'),
  ),
  'fixed rejects null': format(
    '%f',
    [null],
    during('fixed-point clause can only be used on doubles, was given null_type'),
  ),
  'scientific rejects null': format(
    '%e',
    [null],
    during('scientific clause can only be used on doubles, was given null_type'),
  ),
  'the string clause rejects values without text': format(
    '%s',
    [new CelOptional('x')],
    during(
      'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type',
    ),
  ),
  'the string clause rejects bytes that are not UTF-8': format(
    '%s',
    [new Uint8Array([0xff])],
    during('could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string'),
  ),
};

const named = (style: string, cases: Record<string, CallCase>) =>
  Object.fromEntries(Object.entries(cases).map(([sentence, it]) => [`${style}: ${sentence}`, it]));

testCalls(stringsLibrary, named('Kubernetes', everywhere));
testCalls(plainFormatLibrary, named('specification', everywhere));

testCalls(
  stringsLibrary,
  named('Kubernetes', {
    'lists hold literals': format(
      '%s',
      [list('a"b', 3.14, null, list(9n, 8n), timestamp, bytes)],
      String.raw`["a\"b", 3.140000, null, [9, 8], timestamp("2023-02-03T23:31:20Z"), b"xyz"]`,
    ),
    'maps hold literals, sorted by key': format(
      '%s',
      [map(['key2', duration], ['key1', 2.71], ['key3', true])],
      '{"key1":2.710000, "key2":duration("7200s"), "key3":true}',
    ),
    'maps have keys of all types': format('%s', [map([true, 1n], [uint(2n), 2n], [1n, 3n])], '{1:3, 2:2, true:1}'),
    'NaN and infinities are quoted in lists': format('%s', [list(NaN, Infinity, -Infinity)], '["NaN", "+Inf", "-Inf"]'),
    'values without text are rejected in lists': format(
      '%s',
      [list(new CelOptional(1n))],
      during('no formatting function for optional_type'),
    ),
    'fixed groups thousands': format('%.2f', [-1_234_567.891], '-1,234,567.89'),
    'fixed accepts the names of NaN and infinities': format('%f %f %f', ['NaN', 'Infinity', '-Infinity'], 'NaN ∞ -∞'),
    'fixed rejects other texts': format(
      '%f',
      ['1.5'],
      during('fixed-point clause can only be used on doubles, was given string'),
    ),
    'scientific has a raised exponent': format('%e', [1052.032911275], '1.052033\u202f×\u202f10⁰³'),
    'scientific uses the precision as a width': format('%.18e', [-0.0000125], ' -1.250000\u202f×\u202f10⁻⁰⁵'),
    'decimal rejects doubles': format(
      '%d',
      [1],
      during('decimal clause can only be used on integers, was given double'),
    ),
  }),
);

testCalls(
  plainFormatLibrary,
  named('specification', {
    'lists hold texts': format('%s', [list('a"b', 4.2, null, list(9n))], '[a"b, 4.2, null, [9]]'),
    'maps hold texts, sorted by key': format(
      '%s',
      [map(['strKey', 'x'], [6n, duration], [true, 42n])],
      '{6: 7200s, strKey: x, true: 42}',
    ),
    'doubles have no exponent': format('%s %s', [0.000000002, 1e21], '0.000000002 1000000000000000000000'),
    'NaN and infinities have names': format('%s', [list(NaN, Infinity, -Infinity)], '[NaN, Infinity, -Infinity]'),
    'scientific has an exponent of two digits': format('%.6e %e', [1052.032911275, 2.71], '1.052033e+03 2.710000e+00'),
    'scientific rounds into the next power': format('%.1e %.0e', [9.96, 0.00096], '1.0e+01 1e-03'),
    'scientific of zero': format('%.2e', [0], '0.00e+00'),
    'decimal of a double': format('%d', [2.5], '2.5'),
    'fixed of an int': format('%.1f', [3n], '3.0'),
  }),
);

test('all digits are exact', () => {
  const [text] = [call(stringsLibrary, 'format', ['%.25f', list(0.1)])];
  assert.equal(text, '0.1000000000000000055511151');
});

test('a budget limits growing results', () => {
  const long = 'x'.repeat(1000);
  let nested = list(long);
  for (let i = 0; i < 30; i++) nested = list(nested, nested);
  assert.throws(() => call(stringsLibrary, 'format', ['%s', list(nested)], new Budget(1_000_000)), CostLimitError);
});

test('nesting is bounded', () => {
  let deep = list();
  for (let i = 0; i < 100_000; i++) deep = list(deep);
  for (const library of [stringsLibrary, plainFormatLibrary]) {
    assert.throws(() => call(library, 'format', ['%s', list(deep)], new Budget(1e9)), CostLimitError);
  }
});
