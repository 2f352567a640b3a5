import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { DataDirBusyError, DataDirError, acquireDataDir } from '#lib/data-dir-lock.ts';

function aParent(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), 'data-dir-'));
  t.after(() => rmSync(parent, { recursive: true }));
  return parent;
}

test('the directory is made for us alone and carries our pid while it is held', (t) => {
  const dir = join(aParent(t), 'deep', 'data');
  const lock = acquireDataDir(dir);
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.equal(readFileSync(join(dir, 'server.pid'), 'utf8'), `${process.pid}\n`);
  assert.deepEqual(readdirSync(dir).toSorted(), ['lock', 'server.pid']);
  lock.release();
  assert.deepEqual(readdirSync(dir), ['lock']);
});

test('a second holder in the same process is refused until the first lets go', (t) => {
  const dir = join(aParent(t), 'data');
  const first = acquireDataDir(dir);
  assert.throws(() => acquireDataDir(dir), {
    name: 'DataDirBusyError',
    message: `Cannot use data directory "${dir}": it is held by process ${process.pid}; stop it first or choose another --data-dir`,
  });
  first.release();
  const second = acquireDataDir(dir);
  first.release();
  assert.throws(() => acquireDataDir(dir), DataDirBusyError, 'a repeated release frees nothing');
  second.release();
});

test('a directory held by another process is free again once that was killed with SIGKILL', async (t) => {
  const dir = join(aParent(t), 'data');
  const script = `
    import { acquireDataDir } from ${JSON.stringify(import.meta.resolve('#lib/data-dir-lock.ts'))};
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
  assert.ok(existsSync(join(dir, 'server.pid')), 'the killed process could not tidy up');
  acquireDataDir(dir).release();
});

test('a file in place of the directory is refused with the reason', (t) => {
  const file = join(aParent(t), 'file');
  writeFileSync(file, '');
  assert.throws(
    () => acquireDataDir(file),
    (error) => error instanceof DataDirError && error.message.startsWith(`Cannot use data directory "${file}": EEXIST`),
  );
});

test('a directory that cannot be written is refused with what was expected', () => {
  // Even root cannot make files there.
  assert.throws(() => acquireDataDir('/proc/self/selfsame'), /; expected a directory that this user may write to$/);
});

test('a lock file that is no database is refused and left alone', (t) => {
  const dir = aParent(t);
  const junk = 'x'.repeat(200);
  writeFileSync(join(dir, 'lock'), junk);
  assert.throws(() => acquireDataDir(dir), DataDirError);
  assert.equal(readFileSync(join(dir, 'lock'), 'utf8'), junk);
});
