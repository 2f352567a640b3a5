import assert from 'node:assert/strict';
import { test } from 'node:test';
import { raced } from '#lib/raced.ts';

const never = () => new Promise<never>(() => {});

test('work that ends first is the answer', async () => {
  const { signal } = new AbortController();
  assert.equal(await raced(Promise.resolve(1), signal), 1);
  await assert.rejects(raced(Promise.reject(new Error('broken')), signal), /broken/);
});

test('the signal ends work that does not heed it', async () => {
  const controller = new AbortController();
  const racing = raced(never(), controller.signal);
  controller.abort(new Error('too late'));
  await assert.rejects(racing, /too late/);
});

test('a signal that was given before counts, too', async () => {
  await assert.rejects(raced(never(), AbortSignal.abort(new Error('gone'))), /gone/);
});
