import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SortedIds } from '#engine/store/sorted-ids.ts';

test('keeps order and ranks across many runs', () => {
  // A prime step visits all numbers in an order that is neither ascending nor random.
  const all = Array.from({ length: 10_000 }, (_, i) => `id-${(i * 7919) % 10_000}`);
  const ids = new SortedIds();
  for (const id of all) ids.add(id);
  const sorted = all.toSorted();
  assert.deepEqual(ids.slice(0, Infinity), sorted);
  assert.deepEqual(ids.slice(1020, 1030), sorted.slice(1020, 1030));
  for (const rank of [0, 1, 511, 512, 1023, 1024, 1025, 5000, 9999]) assert.equal(ids.rank(sorted[rank]!), rank);
  assert.equal(ids.rank('z'), 10_000);
  for (const id of all.slice(0, 9_990)) ids.remove(id);
  assert.deepEqual(ids.slice(0, Infinity), all.slice(9_990).toSorted());
  assert.equal(ids.size, 10);
});

test('equals a sorted array after any additions and removals', () => {
  const operation = fc.tuple(fc.boolean(), fc.string({ maxLength: 2 }));
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 100 }), fc.string({ maxLength: 2 }), (operations, probe) => {
      const ids = new SortedIds();
      const model = new Set<string>();
      for (const [add, id] of operations) {
        if (add && !model.has(id)) ids.add(id);
        if (!add) ids.remove(id);
        if (add) model.add(id);
        else model.delete(id);
      }
      const sorted = [...model].sort();
      assert.deepEqual(ids.slice(0, Infinity), sorted);
      assert.equal(ids.size, sorted.length);
      assert.equal(ids.rank(probe), sorted.filter((id) => id < probe).length);
    }),
  );
});
