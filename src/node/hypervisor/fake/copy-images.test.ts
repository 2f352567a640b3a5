import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { accessSync } from 'node:fs';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { copyImages, realImages } from '#node/hypervisor/fake/copy-images.ts';

const skip = qemuImgSkipReason();

test('copies the image behind a simulated guest, or fails with a reason', { skip }, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-copy-'));
  try {
    const [source, path, back] = ['source', 'copy', 'back'].map((name) => join(dir, name)) as [string, string, string];
    await writeFile(source, Buffer.alloc(64 * 1024, 'content'));
    await writeFile(path, '');

    await copyImages([{ source, format: 'raw', path }]);

    execFileSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', path, back]);
    assert.ok((await readFile(back)).equals(await readFile(source)));
    await assert.rejects(copyImages([{ source: join(dir, 'none'), format: 'raw', path }]), HypervisorError);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('moves an image into an existing one, and returns its size', { skip }, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-move-'));
  try {
    const [path, to] = ['source', 'target'].map((name) => join(dir, name)) as [string, string];
    await writeFile(path, Buffer.alloc(64 * 1024, 'content'));
    await writeFile(to, '');
    await truncate(to, 64 * 1024);

    await realImages.move({ path, format: 'raw' }, { path: to, format: 'raw' });

    assert.ok((await readFile(to)).equals(await readFile(path)));
    assert.equal(await realImages.bytes({ path, format: 'raw' }), 64 * 1024);
    await assert.rejects(realImages.bytes({ path: join(dir, 'none'), format: 'raw' }), HypervisorError);
  } finally {
    await rm(dir, { recursive: true });
  }
});

function qemuImgSkipReason(): string | false {
  try {
    accessSync('/usr/bin/qemu-img');
    return false;
  } catch {
    return '/usr/bin/qemu-img is not installed';
  }
}
