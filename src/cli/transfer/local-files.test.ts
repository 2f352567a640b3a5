import assert from 'node:assert/strict';
import {
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
import { pathBeside, requireSpace, SpoolFile, writeLocalFile } from '#cli/transfer/local-files.ts';

test('a temporary file has no name, and returns what was written to it', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'spool-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = await SpoolFile.createBeside(join(dir, 'db.ova'));
  assert.deepEqual(readdirSync(dir), []);
  const bytes = Buffer.alloc(600_000, 'data');
  await file.write(bytes, 0);
  const pieces: Buffer[] = [];
  for await (const piece of file.chunks(bytes.length)) pieces.push(piece);
  assert.ok(Buffer.concat(pieces).equals(bytes));
  await assert.rejects(file.read(10, bytes.length - 5), /the file ends before/);
  await file.close();
  await assert.rejects(SpoolFile.createBeside(join(dir, 'missing', 'db.ova')), /Cannot write .*ENOENT/);
});

test('names the needed and the free space', async () => {
  const path = join(tmpdir(), 'db.ova');
  await requireSpace(path, 0);
  await assert.rejects(
    requireSpace(path, 2 ** 60),
    /needs up to .*, and the file system of .* has .* left; free space/,
  );
});

function directory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'files-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test('a written file can be read only by its user, whatever was there before', async (t) => {
  const dir = directory(t);
  const path = join(dir, 'db.ova');
  writeFileSync(path, 'old', { mode: 0o666 });
  writeFileSync(join(dir, 'bait'), 'bait', { mode: 0o666 });
  symlinkSync(join(dir, 'bait'), `${path}.part`);
  await writeLocalFile(path, [Buffer.from('new')], { force: true });
  assert.deepEqual([readFileSync(path, 'utf8'), statSync(path).mode & 0o777], ['new', 0o600]);
  assert.equal(readFileSync(join(dir, 'bait'), 'utf8'), 'bait');
  assert.deepEqual(readdirSync(dir).sort(), ['bait', 'db.ova']);
});

test('a file beside another one must not be reached through a link', async (t) => {
  const dir = directory(t);
  const ovf = join(dir, 'db.ovf');
  mkdirSync(join(dir, 'disks'));
  for (const file of ['a.img', 'disks/b.img']) writeFileSync(join(dir, file), '');
  assert.equal(await pathBeside(ovf, 'a.img'), join(dir, 'a.img'));
  assert.equal(await pathBeside(ovf, 'disks/b.img'), join(dir, 'disks/b.img'));
  symlinkSync('/etc/passwd', join(dir, 'secret.img'));
  symlinkSync('/etc', join(dir, 'etc'));
  symlinkSync('a.img', join(dir, 'near.img'));
  for (const name of ['secret.img', 'etc/passwd', 'near.img']) {
    await assert.rejects(pathBeside(ovf, name), /is a symbolic link to .*; copy the file into the directory of/);
  }
});
