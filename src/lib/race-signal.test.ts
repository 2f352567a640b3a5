import assert from 'node:assert/strict';
import { test } from 'node:test';
import { raceSignal } from '#lib/race-signal.ts';

const never = () => new Promise<never>(() => {});

test('settles like work that ends first', async () => {
  const { signal } = new AbortController();
  assert.equal(await raceSignal(Promise.resolve(1), signal), 1);
  await assert.rejects(raceSignal(Promise.reject(new Error('broken')), signal), /broken/);
});

test('rejects when the signal is aborted although the work continues', async () => {
  const controller = new AbortController();
  const racing = raceSignal(never(), controller.signal);
  controller.abort(new Error('too late'));
  await assert.rejects(racing, /too late/);
});

test('rejects if the signal was aborted before', async () => {
  await assert.rejects(raceSignal(never(), AbortSignal.abort(new Error('gone'))), /gone/);
});
