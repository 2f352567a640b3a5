import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { accessSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HypervisorError } from '../hypervisor.ts';
import { copyImages } from './copy-images.ts';

const skip = whyNoQemuImg();

test('makes an image of what simulated guests stand on, or says why not', { skip }, async () => {
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

function whyNoQemuImg(): string | false {
  try {
    accessSync('/usr/bin/qemu-img');
    return false;
  } catch {
    return '/usr/bin/qemu-img is not installed';
  }
}
