import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGoDuration } from '#kube/go/go-duration.ts';

const cases: Record<string, number | undefined> = {
  '5m': 300_000,
  '1h30m': 5_400_000,
  '1h0m0s': 3_600_000,
  '1.5s': 1500,
  '.5s': 500,
  '1.s': 1000,
  '100ms': 100,
  '1us': 0.001,
  '1µs': 0.001,
  '1μs': 0.001,
  '500000ns': 0.5,
  '0': 0,
  '+0': 0,
  '-0': 0,
  '0s': 0,
  '-0s': 0,
  '+2s': 2000,
  '-2s': -2000,
  '2540400h': 2_540_400 * 3_600_000,

  '': undefined,
  '5': undefined,
  m: undefined,
  '.s': undefined,
  '-': undefined,
  '--1s': undefined,
  '1 s': undefined,
  ' 1s': undefined,
  '1s ': undefined,
  '1d': undefined,
  '1s5': undefined,
  '1e3s': undefined,
  '1.2.3s': undefined,
  '2562048h': undefined,
  [`${'9'.repeat(40)}s`]: undefined,
};

for (const [text, want] of Object.entries(cases)) {
  test(`${JSON.stringify(text)} is ${want === undefined ? 'not a duration' : `${want} ms`}`, () => {
    assert.equal(parseGoDuration(text), want);
  });
}
