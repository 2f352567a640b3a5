import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SortedKeys } from '#controllers/protection/sorted-keys.ts';

test('after any insertions and deletions, the first keys are those of a sorted list', () => {
  const keys = new SortedKeys();
  const model = new Set<string>();
  // Visits all residues in a mixed order; every third step deletes a key.
  for (let step = 1; step <= 600; step++) {
    const key = `ns/vm-${(step * 37) % 101}`;
    if (step % 3 === 0) {
      keys.delete(key);
      model.delete(key);
    } else {
      keys.add(key);
      model.add(key);
    }
    assert.deepEqual(keys.first(4), [...model].toSorted().slice(0, 4), `after step ${step}`);
    assert.equal(keys.size, model.size);
  }
  assert.ok(model.size > 10);
});

test('a key that was added twice is deleted by one delete', () => {
  const keys = new SortedKeys();
  keys.add('a');
  keys.add('a');
  keys.delete('b');
  assert.deepEqual(keys.first(9), ['a']);
  keys.delete('a');
  assert.equal(keys.size, 0);
});
