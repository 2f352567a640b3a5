import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readLog, type ReadOptions } from '#cli/audit/read-log.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';

function scene(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'audit-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const clock = new FakeClock();
  const stopping = new AbortController();
  const path = (name: string) => join(dir, name);
  const read = (options: Partial<ReadOptions> = {}) =>
    readLog({ dir, follow: false, clock, signal: stopping.signal, ...options });
  const follow = () => {
    const lines = read({ follow: true });
    // Closes the file of a reader that was not read to its end.
    t.after(() => lines.return());
    return {
      /** Advances the clock while the reader polls, because file access takes real time. */
      async next(): Promise<string | undefined> {
        const found = lines.next();
        let isFound = false;
        void found.finally(() => (isFound = true));
        while (!isFound) await clock.advance(250);
        return (await found).value ?? undefined;
      },
    };
  };
  return { path, read, follow, stop: () => stopping.abort(), dir };
}

test('reads the files in the order of their numbers', async (t) => {
  const { path, read } = scene(t);
  writeFileSync(path('audit.log'), 'd\n');
  writeFileSync(path('audit-1000000.log'), 'c\n');
  writeFileSync(path('audit-999999.log'), 'a\nb\n');
  writeFileSync(path('other.log'), 'x\n');
  assert.deepEqual(await Array.fromAsync(read()), ['a', 'b', 'c', 'd']);
});

test('omits an incomplete last line and empty lines', async (t) => {
  const { path, read } = scene(t);
  writeFileSync(path('audit-000001.log'), 'a\ntorn');
  writeFileSync(path('audit.log'), '\nb\n\nto');
  assert.deepEqual(await Array.fromAsync(read()), ['a', 'b']);
});

test('joins lines that are longer than one read', async (t) => {
  const { path, read } = scene(t);
  const long = 'é'.repeat(300_000);
  writeFileSync(path('audit.log'), `a\n${long}\nb\n`);
  assert.deepEqual(await Array.fromAsync(read()), ['a', long, 'b']);
});

test('skips files that are too old', async (t) => {
  const { path, read } = scene(t);
  writeFileSync(path('audit-000001.log'), 'a\n');
  writeFileSync(path('audit-000002.log'), 'b\n');
  utimesSync(path('audit-000001.log'), 1000, 1000);
  utimesSync(path('audit-000002.log'), 3000, 3000);
  assert.deepEqual(await Array.fromAsync(read({ sinceMs: 2_000_000 })), ['b']);
});

test('yields nothing if the directory does not exist', async (t) => {
  const { read, dir } = scene(t);
  rmSync(dir, { recursive: true });
  assert.deepEqual(await Array.fromAsync(read()), []);
});

test('neither loses nor repeats lines during a rotation', async (t) => {
  const { path, read } = scene(t);
  writeFileSync(path('audit-000001.log'), 'a\n');
  writeFileSync(path('audit.log'), 'b\n');
  const lines = read();
  assert.equal((await lines.next()).value, 'a');
  renameSync(path('audit.log'), path('audit-000002.log'));
  writeFileSync(path('audit.log'), 'c\n');
  rmSync(path('audit-000001.log'));
  assert.deepEqual(await Array.fromAsync(lines), ['b', 'c']);
});

test('follows new lines through rotations until it is stopped', async (t) => {
  const { path, follow, stop } = scene(t);
  const lines = follow();
  writeFileSync(path('audit.log'), 'a\nb');
  assert.equal(await lines.next(), 'a');
  appendFileSync(path('audit.log'), 'b\n');
  assert.equal(await lines.next(), 'bb');
  appendFileSync(path('audit.log'), 'c\n');
  renameSync(path('audit.log'), path('audit-000001.log'));
  writeFileSync(path('audit-000002.log'), 'd\n');
  writeFileSync(path('audit.log'), 'e\n');
  for (const want of ['c', 'd', 'e']) assert.equal(await lines.next(), want);
  stop();
  assert.equal(await lines.next(), undefined);
});

test('does not start again if the current file is removed', async (t) => {
  const { path, follow } = scene(t);
  writeFileSync(path('audit-000001.log'), 'a\n');
  writeFileSync(path('audit.log'), 'b\n');
  const lines = follow();
  for (const want of ['a', 'b']) assert.equal(await lines.next(), want);
  rmSync(path('audit.log'));
  writeFileSync(path('audit.log'), 'c\n');
  assert.equal(await lines.next(), 'c');
});
