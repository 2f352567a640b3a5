import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RotatedFile } from '#engine/audit/rotated-file.ts';

function scene(t: TestContext, { maxBytes = 10, maxRotated = 2 } = {}) {
  const data = mkdtempSync(join(tmpdir(), 'audit-'));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const dir = join(data, 'audit');
  const file = new RotatedFile({ dir, maxBytes, maxRotated });
  t.after(() => file.close());
  const append = (text: string) => file.append(Buffer.from(text));
  const files = () => Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), 'utf8')]));
  return { dir, file, append, files };
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('the file and its directory are readable by their owner only', async (t) => {
  const { dir, append } = scene(t);
  await append('a\n');
  assert.deepEqual([modeOf(dir), modeOf(join(dir, 'audit.log'))], ['700', '600']);
});

test('the mode of a file that others can read is corrected', async (t) => {
  const { dir, append } = scene(t);
  mkdirSync(dir);
  writeFileSync(join(dir, 'audit.log'), 'a\n');
  chmodSync(join(dir, 'audit.log'), 0o644);
  await append('b\n');
  assert.equal(modeOf(join(dir, 'audit.log')), '600');
});

test('a full file is rotated, and the oldest are deleted', async (t) => {
  const { append, files } = scene(t);
  for (const line of ['1111', '2222', '3333', '4444', '5555', '6666', '7777']) await append(`${line}\n`);
  assert.deepEqual(files(), {
    'audit.log': '7777\n',
    'audit-000002.log': '3333\n4444\n',
    'audit-000003.log': '5555\n6666\n',
  });
});

test('data larger than a file gets a file of its own', async (t) => {
  const { append, files } = scene(t);
  for (const line of ['1', '2'.repeat(30), '3']) await append(`${line}\n`);
  assert.deepEqual(files(), {
    'audit-000001.log': '1\n',
    'audit-000002.log': `${'2'.repeat(30)}\n`,
    'audit.log': '3\n',
  });
});

test('numbers continue after a restart, also beyond six digits', async (t) => {
  const { dir, append, files } = scene(t);
  mkdirSync(dir);
  writeFileSync(join(dir, 'audit-999999.log'), 'old\n');
  writeFileSync(join(dir, 'audit.log'), '123456789\n');
  await append('a\n');
  assert.deepEqual(Object.keys(files()).sort(), ['audit-1000000.log', 'audit-999999.log', 'audit.log']);
});

test('an incomplete line of a killed process is terminated', async (t) => {
  const { dir, append, files } = scene(t, { maxBytes: 100 });
  mkdirSync(dir);
  writeFileSync(join(dir, 'audit.log'), 'whole\ntor');
  await append('next\n');
  assert.deepEqual(files(), { 'audit.log': 'whole\ntor\nnext\n' });
});

test('a deleted directory is created again', async (t) => {
  const { dir, file, append, files } = scene(t);
  await append('a\n');
  await file.close();
  rmSync(dir, { recursive: true });
  await append('b\n');
  assert.deepEqual(files(), { 'audit.log': 'b\n' });
});

test('a symbolic link instead of the file is not followed, and writing continues once it is removed', async (t) => {
  const { dir, append, files } = scene(t);
  mkdirSync(dir);
  const target = join(dir, 'target');
  writeFileSync(target, '');
  symlinkSync(target, join(dir, 'audit.log'));
  await assert.rejects(append('a\n'), { code: 'ELOOP' });
  rmSync(join(dir, 'audit.log'));
  await append('b\n');
  assert.deepEqual(files(), { target: '', 'audit.log': 'b\n' });
});
