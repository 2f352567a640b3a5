import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DomainLocks } from '#node/guests/domain-locks.ts';

test('callers of one domain wait for each other, also after a failure; callers of other domains do not wait', async () => {
  const locks = new DomainLocks();
  const seen: string[] = [];
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const first = locks.run('a', async () => {
    await gate;
    seen.push('first');
    throw new Error('broken');
  });
  const second = locks.run('a', async () => void seen.push('second'));
  await locks.run('b', async () => void seen.push('other'));
  assert.deepEqual(seen, ['other']);
  open();
  await assert.rejects(first, /broken/);
  await second;
  assert.deepEqual(seen, ['other', 'first', 'second']);
});
