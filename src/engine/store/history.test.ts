import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History } from '#engine/store/history.ts';
import type { Entry, StoreEvent } from '#engine/store/store.ts';

function entry(id: string, revision: number, size = 0): Entry {
  return { collection: 'pods', id, revision, bytes: Buffer.alloc(size) };
}

function event(type: StoreEvent['type'], now: Entry, previous?: Entry): StoreEvent {
  return { type, entry: now, previous };
}

test('drops an eighth at once and returns exactly the records that are no longer needed', () => {
  const history = new History({ maxEvents: 16, maxBytes: Infinity }, 0);
  const versions = Array.from({ length: 17 }, (_, i) => entry('a', i + 1));
  for (const [i, version] of versions.slice(0, 16).entries()) history.push(event('put', version, versions[i - 1]));
  assert.equal(history.cut(), undefined);
  history.push(event('delete', versions[16]!, versions[15]));
  // Drops events 1 to 3. Record 3 stays, because event 4 replaced it and event 4 stays.
  assert.deepEqual(history.cut(), { revision: 3, removable: [1, 2] });
  assert.equal(history.compactedRevision, 3);
  assert.equal(history.since('pods', 3)[0]?.previous?.revision, 3);
  assert.equal(history.cut(), undefined);
});

test('returns the record of a delete once its event is dropped', () => {
  const history = new History({ maxEvents: 0, maxBytes: Infinity }, 0);
  history.push(event('put', entry('a', 1)));
  history.push(event('delete', entry('a', 2), entry('a', 1)));
  assert.deepEqual(history.cut(), { revision: 2, removable: [1, 2] });
});

test('counts only the bytes that the history alone holds', () => {
  const history = new History({ maxEvents: 100, maxBytes: 80 }, 0);
  history.push(event('put', entry('a', 1, 1000)));
  history.push(event('put', entry('b', 2, 1000)));
  assert.equal(history.cut(), undefined, 'current versions do not count');
  history.push(event('put', entry('c', 4, 10), entry('c', 3, 50)));
  history.push(event('delete', entry('d', 6, 15), entry('d', 5, 15)));
  assert.equal(history.cut(), undefined, 'exactly full');
  history.push(event('put', entry('c', 7, 10), entry('c', 4, 10)));
  assert.deepEqual(history.cut(), { revision: 4, removable: [3] });
});
