import assert from 'node:assert/strict';
import test from 'node:test';
import { humanDuration } from '#kube/go/human-duration.ts';

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;
const Y = 365 * D;

const cases: [number, string][] = [
  [-2 * S, '<invalid>'],
  [-1999, '0s'],
  [-1, '0s'],
  [0, '0s'],
  [999, '0s'],
  [S, '1s'],
  [2 * M - 1, '119s'],
  [2 * M, '2m'],
  [2 * M + 5 * S, '2m5s'],
  [10 * M - 1, '9m59s'],
  [10 * M, '10m'],
  [10 * M + 59 * S, '10m'],
  [3 * H - 1, '179m'],
  [3 * H, '3h'],
  [3 * H + 4 * M, '3h4m'],
  [8 * H - 1, '7h59m'],
  [8 * H, '8h'],
  [2 * D - 1, '47h'],
  [2 * D, '2d'],
  [5 * D + 2 * H, '5d2h'],
  [8 * D - 1, '7d23h'],
  [8 * D, '8d'],
  [2 * Y - 1, '729d'],
  [2 * Y, '2y'],
  [2 * Y + D, '2y1d'],
  [8 * Y - 1, '7y364d'],
  [8 * Y, '8y'],
  [20 * Y + 100 * D, '20y'],
  [NaN, '<invalid>'],
];

for (const [ms, want] of cases) {
  test(`${ms} ms is ${want}`, () => assert.equal(humanDuration(ms), want));
}
