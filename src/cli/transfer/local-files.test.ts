import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { requireSpace, SpoolFile } from '#cli/transfer/local-files.ts';

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
