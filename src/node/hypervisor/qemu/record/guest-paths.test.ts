import assert from 'node:assert/strict';
import { fstatSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { GuestPaths } from '#node/hypervisor/qemu/record/guest-paths.ts';

const dir = new DomainDir('/node/domains', 'a-uid');

test('makes paths of the domain relative to QEMU’s working directory', () => {
  const paths = new GuestPaths(dir, { inherit: true });
  assert.equal(paths.pathFor('/node/domains/a-uid/volumes/x.img'), '../volumes/x.img');
  assert.equal(paths.pathFor('/node/domains/a-uid/run/nvram.fd'), 'nvram.fd');
});

test('reaches other paths through inherited directories, each opened once', () => {
  const paths = new GuestPaths(dir, { inherit: true });
  assert.equal(paths.pathFor('/node/volumes/a/disk.img'), '/proc/self/fd/3/disk.img');
  assert.equal(paths.pathFor('/dev/loop1'), '/proc/self/fd/4/loop1');
  assert.equal(paths.pathFor('/node/volumes/a/other.img'), '/proc/self/fd/3/other.img');
  // Only a prefix of the domain directory's name.
  assert.equal(paths.pathFor('/node/domains/a-uid-2/x.img'), '/proc/self/fd/5/x.img');
});

test('keeps absolute paths if QEMU runs as our own user', () => {
  const paths = new GuestPaths(dir, { inherit: false });
  assert.equal(paths.pathFor('/node/volumes/a/disk.img'), '/node/volumes/a/disk.img');
});

test('opens directories in the order of their numbers, and closes them', async () => {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-paths-'));
  try {
    await writeFile(join(root, 'disk.img'), 'content');
    const paths = new GuestPaths(dir, { inherit: true });
    paths.pathFor('/dev/null');
    paths.pathFor(join(root, 'disk.img'));
    const fds = await paths.open();
    assert.equal(fds.length, 2);
    assert.equal(readFileSync(`/proc/self/fd/${fds[1]}/disk.img`, 'utf8'), 'content');
    await paths.close();
    for (const fd of fds) assert.throws(() => fstatSync(fd), /EBADF/);
  } finally {
    await rm(root, { recursive: true });
  }
});

test('fails for a missing directory', async () => {
  const paths = new GuestPaths(dir, { inherit: true });
  paths.pathFor('/no/such/disk.img');
  await assert.rejects(paths.open(), /ENOENT/);
  await paths.close();
});
