import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { openSqliteStore } from '#engine/store/open-store.ts';
import { StoreUnavailableError } from '#engine/store/store.ts';
import { ids, put, remove, sqliteBed } from '#engine/store/testing/test-bed.ts';

function modeOf(file: string): number {
  return statSync(file).mode & 0o777;
}

test('only the owner can read the files, regardless of their previous mode', async (t) => {
  const bed = sqliteBed();
  t.after(() => bed.remove());
  const store = await bed.open();
  await put(store, 'a');
  assert.deepEqual([modeOf(bed.file), modeOf(`${bed.file}-wal`)], [0o600, 0o600]);
  await store.close();
  chmodSync(bed.file, 0o644);
  await put(await bed.open(), 'a');
  assert.deepEqual([modeOf(bed.file), modeOf(`${bed.file}-wal`)], [0o600, 0o600]);
});

test('a closed store is a single file', async (t) => {
  const bed = sqliteBed();
  t.after(() => bed.remove());
  await put(await bed.open(), 'a');
  const store = await bed.open();
  await store.close();
  assert.deepEqual(readdirSync(join(bed.file, '..')), ['store.db']);
});

test('an error names a file that is in use or in a missing directory', async (t) => {
  const bed = sqliteBed();
  t.after(() => bed.remove());
  const store = await bed.open();
  await put(store, 'a');
  await assert.rejects(openSqliteStore(bed.file), (error) => {
    assert(error instanceof StoreUnavailableError);
    assert.equal(error.message, `Cannot open ${bed.file}: another process uses it; stop that process first`);
    return true;
  });
  const nowhere = join(bed.file, '..', 'nowhere', 'store.db');
  await assert.rejects(openSqliteStore(nowhere), (error) => {
    assert(error instanceof StoreUnavailableError);
    assert.ok(error.message.startsWith(`Cannot open ${nowhere}: `));
    return true;
  });
  assert.equal((await put(store, 'a')).revision, 2);
});

test('compaction removes superseded rows and deletes from the file, and nothing else', async (t) => {
  const bed = sqliteBed();
  t.after(() => bed.remove());
  const store = await bed.open({ maxHistoryEvents: 100 });
  await put(store, 'kept');
  for (let i = 0; i < 1000; i++) void put(store, `id-${i % 5}`);
  await put(store, 'last');
  const { compactedRevision } = store;
  assert.ok(compactedRevision > 900);
  await store.close();
  const db = new DatabaseSync(bed.file);
  t.after(() => db.close());
  const rows = db.prepare('SELECT revision FROM log ORDER BY revision').all();
  // The rows after the compacted revision, and those that were current at it: 5 ids in rotation and `kept`.
  assert.equal(rows.length, 1002 - compactedRevision + 6);
  assert.equal(rows[0]!['revision'], 1);
});

test('the file reuses the space of removed entries', async (t) => {
  const bed = sqliteBed();
  t.after(() => bed.remove());
  const store = await bed.open({ maxHistoryEvents: 400 });
  const value = 'x'.repeat(2000);
  const sizes: number[] = [];
  for (let round = 0; round < 30; round++) {
    const written = await Promise.all(Array.from({ length: 200 }, (_, n) => put(store, `${round}-${n}`, value)));
    // Some entries stay for long, between others that do not.
    await put(store, `long-${round % 5}`, value);
    await Promise.all(written.map(({ id }) => remove(store, id, value)));
    sizes.push(statSync(bed.file).size + statSync(`${bed.file}-wal`).size);
  }
  const [earlier, later] = [Math.max(...sizes.slice(10, 20)), Math.max(...sizes.slice(20))];
  assert.ok(later <= earlier * 1.1, `the file grows: ${sizes.join(' ')}`);
});

test('a worker that dies fails the writes in flight, and the next write starts another worker from the acknowledged state', async (t) => {
  const bed = sqliteBed();
  t.after(() => bed.remove());
  const started = once(process, 'worker');
  const store = await bed.open();
  const [worker] = (await started) as [Worker];
  await put(store, 'a');
  // The worker ends on the next request, so it cannot have answered it.
  worker.postMessage = () => void worker.terminate();
  await assert.rejects(put(store, 'b'), /^StoreUnavailableError: Cannot write to .+: its worker thread ended$/);
  assert.ok(store.fault);
  assert.equal(store.get('pods', 'b'), undefined);
  assert.equal((await put(store, 'c')).revision, 3);
  assert.equal(store.fault, undefined);
  const again = await bed.open();
  assert.deepEqual(ids(again.list('pods').entries), ['a', 'c']);
});
