import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { DataDirBusyError, DataDirError, acquireDataDir } from '#lib/files/data-dir-lock.ts';

function aParent(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), 'data-dir-'));
  t.after(() => rmSync(parent, { recursive: true }));
  return parent;
}

test('creates the directory for its owner only, with the pid of the holder', (t) => {
  const dir = join(aParent(t), 'deep', 'data');
  const lock = acquireDataDir(dir);
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.equal(readFileSync(join(dir, 'server.pid'), 'utf8'), `${process.pid}\n`);
  assert.deepEqual(readdirSync(dir).toSorted(), ['lock', 'server.pid']);
  lock.release();
  assert.deepEqual(readdirSync(dir), ['lock']);
});

test('refuses a second holder in the same process until the first releases the lock', (t) => {
  const dir = join(aParent(t), 'data');
  const first = acquireDataDir(dir);
  assert.throws(() => acquireDataDir(dir), {
    name: 'DataDirBusyError',
    message: `Cannot use data directory "${dir}": it is held by process ${process.pid}; stop it first or choose another --data-dir`,
  });
  first.release();
  const second = acquireDataDir(dir);
  first.release();
  assert.throws(() => acquireDataDir(dir), DataDirBusyError, 'a repeated release must not release the lock of another');
  second.release();
});

test('frees the directory of a process that was killed with SIGKILL', async (t) => {
  const dir = join(aParent(t), 'data');
  const script = `
    import { acquireDataDir } from ${JSON.stringify(import.meta.resolve('#lib/files/data-dir-lock.ts'))};
    globalThis.lock = acquireDataDir(${JSON.stringify(dir)});
    process.stdout.write('held');
    process.stdin.resume();
  `;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => holder.kill('SIGKILL'));
  assert.equal(String((await once(holder.stdout, 'data'))[0]), 'held');
  assert.throws(
    () => acquireDataDir(dir),
    (error) => error instanceof DataDirBusyError && error.pid === holder.pid,
  );
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  assert.ok(existsSync(join(dir, 'server.pid')), 'the killed process cannot remove its pid file');
  acquireDataDir(dir).release();
});

test('refuses a file in place of the directory, with the reason', (t) => {
  const file = join(aParent(t), 'file');
  writeFileSync(file, '');
  assert.throws(
    () => acquireDataDir(file),
    (error) => error instanceof DataDirError && error.message.startsWith(`Cannot use data directory "${file}": EEXIST`),
  );
});

test('refuses a directory that cannot be written', () => {
  // Even root cannot create files there.
  assert.throws(() => acquireDataDir('/proc/self/selfsame'), /; expected a directory that this user may write to$/);
});

test('refuses a lock file that is not a database and does not change it', (t) => {
  const dir = aParent(t);
  const junk = 'x'.repeat(200);
  writeFileSync(join(dir, 'lock'), junk);
  assert.throws(() => acquireDataDir(dir), DataDirError);
  assert.equal(readFileSync(join(dir, 'lock'), 'utf8'), junk);
});
