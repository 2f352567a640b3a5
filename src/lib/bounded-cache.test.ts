import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedCache } from '#lib/bounded-cache.ts';

const keysIn = (cache: BoundedCache<string, number>, keys: string) =>
  [...keys].filter((key) => cache.get(key) !== undefined).join('');

test('removes the oldest entry if there are too many', () => {
  const cache = new BoundedCache<string, number>({ maxEntries: 2, maxWeight: 100 });
  for (const key of 'abc') cache.set(key, 1, 1);
  assert.equal(keysIn(cache, 'abc'), 'bc');
});

test('removes the oldest entries if they weigh too much', () => {
  const cache = new BoundedCache<string, number>({ maxEntries: 10, maxWeight: 10 });
  cache.set('a', 1, 4);
  cache.set('b', 1, 4);
  cache.set('c', 1, 8);
  assert.equal(keysIn(cache, 'abc'), 'c');
});

test('does not store a value heavier than the limit, and removes the value that it would replace', () => {
  const cache = new BoundedCache<string, number>({ maxEntries: 10, maxWeight: 10 });
  cache.set('a', 1, 1);
  cache.set('a', 2, 11);
  assert.equal(cache.get('a'), undefined);
});

test('counts the weight of a replaced entry only once', () => {
  const cache = new BoundedCache<string, number>({ maxEntries: 10, maxWeight: 10 });
  for (let i = 0; i < 100; i++) cache.set('a', i, 9);
  cache.set('b', 1, 1);
  assert.deepEqual([cache.get('a'), cache.get('b')], [99, 1]);
});
