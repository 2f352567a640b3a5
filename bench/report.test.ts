import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amount, rowText, verdict, type Row, type Unit, type Verdict } from './report.ts';
import { median, percentile } from './statistics.ts';

const verdicts: Record<string, { row: Omit<Row, 'what' | 'unit'>; want: Verdict }> = {
  'a rate at its share of the floor passes': {
    row: { engine: 50, floor: 100, bar: { ratioAtLeast: 0.5 } },
    want: 'PASS',
  },
  'a rate short of its share is below': { row: { engine: 49, floor: 100, bar: { ratioAtLeast: 0.5 } }, want: 'below' },
  'the ratio of pairs counts if there is one': {
    row: { engine: 50, floor: 100, ratio: 0.98, bar: { ratioAtLeast: 0.97 } },
    want: 'PASS',
  },
  'an amount below its limit passes': { row: { engine: 2.9, floor: 1, bar: { below: 3 } }, want: 'PASS' },
  'an amount at its limit does not pass': { row: { engine: 3, floor: 1, bar: { below: 3 } }, want: 'below' },
  'a missing figure does not pass': { row: { engine: Number.NaN, floor: 1, bar: { below: 3 } }, want: 'below' },
  'an allowed difference to the floor passes': {
    row: { engine: 4, floor: 1, bar: { moreThanFloor: 3 } },
    want: 'PASS',
  },
  'a larger difference does not pass': { row: { engine: 4.1, floor: 1, bar: { moreThanFloor: 3 } }, want: 'below' },
  'a difference to a missing floor does not pass': {
    row: { engine: 1, bar: { moreThanFloor: 3 } },
    want: 'below',
  },
  'there is no verdict without a bar': { row: { engine: 1, floor: 1 }, want: '' },
};
for (const [what, { row, want }] of Object.entries(verdicts)) {
  test(what, () => assert.equal(verdict({ what, unit: 'seconds', ...row }), want));
}

const amounts: Record<string, [number, Unit]> = {
  '12,346 /s': [12_345.6, 'perSecond'],
  '45.7 /s': [45.67, 'perSecond'],
  '1.23 ms': [1.234, 'ms'],
  '45.7 ms': [45.67, 'ms'],
  '0.98 s': [0.98, 'seconds'],
  '250 MB': [250e6, 'bytes'],
};
for (const [want, [value, unit]] of Object.entries(amounts)) {
  test(`shows ${value} ${unit} as ${want}`, () => assert.equal(amount(value, unit), want));
}

test('a row shows figure, floor, ratio, bar, verdict and all other columns', () => {
  const row: Row = {
    what: 'GET, 16 clients',
    unit: 'perSecond',
    engine: 12_000,
    floor: 20_000,
    bar: { ratioAtLeast: 0.5 },
    p50Ms: 1.2,
    p99Ms: 11.25,
    cpuUs: 80.4,
    floorCpuUs: 45,
    serverCores: 0.98,
    clientCores: 0.5,
    note: 'once',
  };
  const want =
    'GET, 16 clients | 12,000 /s | 20,000 /s | 60 % | >= 50 % | PASS | 1.20 / 11.3 ms | 80 / 45 us | 0.98 | 0.50 | once';
  assert.equal(rowText(row).replace(/ {2,}/g, ' | '), want);
});

test('percentiles are measured values', () => {
  const values = Array.from({ length: 200 }, (_, at) => 200 - at);
  assert.deepEqual(
    [0.5, 0.99, 1].map((share) => percentile(values, share)),
    [100, 198, 200],
  );
  assert.ok(Number.isNaN(percentile([], 0.5)));
});

test('the median of an even number is the mean of the middle two', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});
