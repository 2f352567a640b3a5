import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { placeGuestFiles } from '#plane/node/guest-files.ts';

function scene(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'selfsame-guest-files-'));
  t.after(() => rmSync(root, { recursive: true }));
  const [from, nodeDir] = [join(root, 'built'), join(root, 'node')] as const;
  mkdirSync(from);
  const write = (name: string, text: string, mode = 0o644) => {
    rmSync(join(from, name), { force: true });
    writeFileSync(join(from, name), text);
    chmodSync(join(from, name), mode);
  };
  return { from, nodeDir, write };
}

test('each node gets both files, readable for guests', async (t) => {
  const { from, nodeDir, write } = scene(t);
  write('vmlinuz', 'kernel', 0o600);
  write('initrd.gz', 'initrd');
  const files = await placeGuestFiles(from, nodeDir);
  assert.deepEqual(files, {
    kernelPath: join(nodeDir, 'guest/vmlinuz'),
    initrdPath: join(nodeDir, 'guest/initrd.gz'),
  });
  assert.equal(statSync(join(nodeDir, 'guest')).mode & 0o777, 0o711);
  for (const [name, text] of Object.entries({ vmlinuz: 'kernel', 'initrd.gz': 'initrd' })) {
    const path = join(nodeDir, 'guest', name);
    assert.equal(readFileSync(path, 'utf8'), text);
    assert.equal(statSync(path).mode & 0o004, 0o004);
  }
  assert.equal(statSync(join(from, 'vmlinuz')).mode & 0o777, 0o600, 'the original is unchanged');
});

test('a new build of the guest replaces the old one', async (t) => {
  const { from, nodeDir, write } = scene(t);
  write('vmlinuz', 'kernel');
  write('initrd.gz', 'old');
  await placeGuestFiles(from, nodeDir);
  write('initrd.gz', 'new');
  const files = await placeGuestFiles(from, nodeDir);
  assert.equal(readFileSync(files!.initrdPath, 'utf8'), 'new');
  assert.deepEqual(readdirSync(join(nodeDir, 'guest')).sort(), ['initrd.gz', 'vmlinuz']);
});

test('returns undefined if one of the files was not built', async (t) => {
  const { from, nodeDir, write } = scene(t);
  assert.equal(await placeGuestFiles(from, nodeDir), undefined);
  write('vmlinuz', 'kernel');
  assert.equal(await placeGuestFiles(from, nodeDir), undefined);
});
