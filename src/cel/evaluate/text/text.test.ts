import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDouble, parseDouble, parseInteger, parseUnsigned } from '#cel/evaluate/text/number-text.ts';
import { formatDuration, formatTimestamp, parseDuration, parseTimestamp } from '#cel/evaluate/text/time-text.ts';
import { CelDuration, CelFault, CelTimestamp } from '#cel/value.ts';

const doubles: Record<string, number> = {
  '0': 0,
  '-0': -0,
  '0.5': 0.5,
  '123456': 123456,
  '1e+06': 1e6,
  '1.234567e+06': 1234567,
  '0.0001': 0.0001,
  '1e-05': 0.00001,
  '1.7976931348623157e+308': Number.MAX_VALUE,
  '+Inf': Infinity,
  '-Inf': -Infinity,
  NaN: NaN,
};
for (const [text, value] of Object.entries(doubles)) {
  test(`formats a double as Go does: ${text}`, () => {
    assert.equal(formatDouble(value), text);
    assert.ok(Object.is(parseDouble(text), value), `${parseDouble(text)}`);
  });
}

test('parses numbers as Go does', () => {
  assert.deepEqual(['+5', '-5', '007'].map(parseInteger), [5n, -5n, 7n]);
  assert.deepEqual(
    ['', '5.0', '0x5', ' 5', '9223372036854775808', '9'.repeat(5000)].map(parseInteger),
    Array(6).fill(undefined),
  );
  assert.deepEqual(['-1', '+1', '18446744073709551616'].map(parseUnsigned), Array(3).fill(undefined));
  assert.deepEqual(['', '.', '1e', '1e400', '--1', '0x1p2'].map(parseDouble), Array(6).fill(undefined));
});

const durations: Record<string, readonly [nanos: bigint, written: string]> = {
  '0': [0n, '0s'],
  '1h30m': [5_400_000_000_000n, '5400s'],
  '-1.5s': [-1_500_000_000n, '-1.5s'],
  '1ns': [1n, '0.000000001s'],
  '250us': [250_000n, '0.00025s'],
  '.5ms': [500_000n, '0.0005s'],
  '2562047h47m16.854775807s': [2n ** 63n - 1n, '9223372036.854776s'],
};
for (const [text, [nanos, written]] of Object.entries(durations)) {
  test(`parses and formats the duration ${text}`, () => {
    assert.deepEqual(parseDuration(text), new CelDuration(nanos));
    assert.equal(formatDuration(new CelDuration(nanos)), written);
  });
}

test('rejects invalid durations', () => {
  for (const text of ['', '1', 's', '1 s', '1d', '1s1', '+-1s', '1s'.repeat(200)]) {
    assert.equal(parseDuration(text), undefined, text);
  }
  assert.ok(parseDuration('2562048h') instanceof CelFault);
});

const times: Record<string, string> = {
  '1970-01-01T00:00:00Z': '1970-01-01T00:00:00Z',
  '2024-02-29T23:59:59.123456789Z': '2024-02-29T23:59:59.123456789Z',
  '2024-01-01T00:00:00.500+01:00': '2023-12-31T23:00:00.5Z',
  '0001-01-01T00:00:00Z': '0001-01-01T00:00:00Z',
  '1969-12-31T23:59:59.9Z': '1969-12-31T23:59:59.9Z',
};
for (const [text, written] of Object.entries(times)) {
  test(`parses and formats the time ${text}`, () => {
    const time = parseTimestamp(text);
    assert.ok(time instanceof CelTimestamp);
    assert.equal(formatTimestamp(time), written);
  });
}

test('rejects invalid times', () => {
  for (const text of [
    '',
    '2023-02-29T00:00:00Z',
    '2023-01-01',
    '2023-01-01T24:00:00Z',
    '2023-01-01T00:00:00',
    '2023-13-01T00:00:00Z',
  ]) {
    assert.equal(parseTimestamp(text), undefined, text);
  }
  assert.ok(parseTimestamp('0000-01-01T00:00:00Z') instanceof CelFault);
});
