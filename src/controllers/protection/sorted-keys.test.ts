import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SortedKeys } from '#controllers/protection/sorted-keys.ts';

test('whatever comes and goes, the first are those that sorting would give', () => {
  const keys = new SortedKeys();
  const model = new Set<string>();
  // Steps through all residues in an order that is none of theirs; every third step takes one out.
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

test('a key that is there twice is gone at once', () => {
  const keys = new SortedKeys();
  keys.add('a');
  keys.add('a');
  keys.delete('b');
  assert.deepEqual(keys.first(9), ['a']);
  keys.delete('a');
  assert.equal(keys.size, 0);
});
