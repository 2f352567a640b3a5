import assert from 'node:assert/strict';
import { test } from 'node:test';
import { displayWidth } from '#lib/terminal/display-width.ts';
import { barText, bytesText, RateMeter, remainingText, secondsText } from '#lib/terminal/progress-text.ts';

const sizes: Record<string, number> = {
  '0 B': 0,
  '1023 B': 1023,
  '1.0 KiB': 1024,
  '1.5 MiB': 1.5 * 1024 ** 2,
  '64.0 GiB': 64 * 1024 ** 3,
  '2048.0 PiB': 2 * 1024 ** 6,
};
for (const [want, bytes] of Object.entries(sizes)) test(want, () => assert.equal(bytesText(bytes), want));

const times: Record<string, number> = { '0s': 0.2, '59s': 59.4, '1m0s': 59.6, '3m20s': 200, '2h5m': 7530 };
for (const [want, seconds] of Object.entries(times)) test(want, () => assert.equal(secondsText(seconds), want));

test('says how much time is left only if there is something left and a rate', () => {
  assert.equal(remainingText(100, 10), ', 10s left');
  assert.equal(remainingText(100, 0), '');
  assert.equal(remainingText(0, 10), '');
});

test('the rate follows the last seconds', () => {
  const meter = new RateMeter(0, 0);
  assert.equal(meter.rate(1000, 100), 100);
  for (let second = 2; second <= 30; second++) meter.rate(second * 1000, 100 + (second - 1) * 10);
  assert.equal(Math.round(meter.rate(31_000, 400)), 10);
});

const PARTS = { label: 'disk a', done: 1, total: 4, detail: '1 of 4' };
const bars: Record<string, { parts?: object; columns: number; want: string }> = {
  'a bar that fills the line': { columns: 40, want: 'disk a [====>              ]  25% 1 of 4' },
  'a bar of a limited width': {
    columns: 200,
    want: `disk a [${'='.repeat(10)}>${' '.repeat(29)}]  25% 1 of 4`,
  },
  'no bar on a narrow terminal': { columns: 29, want: 'disk a 25% 1 of 4' },
  'a short label on a narrow terminal': {
    parts: { label: 'a-label-that-is-very-long' },
    columns: 37,
    want: '...very-long [==>       ]  25% 1 of 4',
  },
  'a shorter label on a narrower terminal': {
    parts: { label: 'a-label-that-is-very-long' },
    columns: 30,
    want: '...-long 25% 1 of 4',
  },
  'a wide label': { parts: { label: '日本' }, columns: 40, want: '日本 [=====>               ]  25% 1 of 4' },
  'a full bar only at the end': {
    parts: { done: 999, total: 1000 },
    columns: 36,
    want: 'disk a [==============>]  99% 1 of 4',
  },
  'a full bar at the end': { parts: { done: 4 }, columns: 36, want: 'disk a [===============] 100% 1 of 4' },
  'more than expected': { parts: { done: 5 }, columns: 36, want: 'disk a [===============] 100% 1 of 4' },
};
for (const [title, { parts = {}, columns, want }] of Object.entries(bars)) {
  test(`draws ${title}`, () => {
    const text = barText({ ...PARTS, ...parts }, columns);
    assert.equal(text, want);
    assert.ok(displayWidth(text) <= columns);
  });
}
