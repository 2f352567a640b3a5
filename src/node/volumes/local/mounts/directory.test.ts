import assert from 'node:assert/strict';
import { constants, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Directory } from '#node/volumes/local/mounts/directory.ts';
import { aScene } from '#node/volumes/local/testing/volumes-scene.ts';

const { O_CREAT, O_RDWR } = constants;

describe('directory', () => {
  it('does not follow a link to a directory', async () => {
    await using scene = aScene();
    symlinkSync('/etc', join(scene.dir, 'elsewhere'));
    await using directory = await Directory.open(scene.dir);

    await assert.rejects(directory!.child('elsewhere'), { code: 'ENOTDIR' });
    await assert.rejects(directory!.makeChild('elsewhere', 0o711), { code: 'ENOTDIR' });
  });

  it('does not follow a link to a file, also when it creates one', async () => {
    await using scene = aScene();
    symlinkSync(join(scene.dir, 'target'), join(scene.dir, 'disk.img'));
    await using directory = await Directory.open(scene.dir);

    await assert.rejects(directory!.open('disk.img', O_RDWR), { code: 'ELOOP' });
    await assert.rejects(directory!.open('disk.img', O_RDWR | O_CREAT), { code: 'ELOOP' });
    assert.equal(existsSync(join(scene.dir, 'target')), false);
  });

  it('refers to the opened directory even if its path is replaced', async () => {
    await using scene = aScene();
    await using root = await Directory.open(scene.dir);
    await using held = await root!.makeChild('held', 0o711);
    await root!.rename('held', 'moved');
    symlinkSync('/nonexistent', join(scene.dir, 'held'));

    await using file = await held.open('file', O_RDWR | O_CREAT);

    assert.ok(file !== undefined && existsSync(join(scene.dir, 'moved', 'file')));
  });

  for (const name of ['', '.', '..', 'a/b', '../a', 'a\0b', 'x'.repeat(256)]) {
    it(`refuses the name ${JSON.stringify(name).slice(0, 20)}`, async () => {
      await using scene = aScene();
      await using directory = await Directory.open(scene.dir);
      await assert.rejects(async () => directory!.child(name), /Invariant broken/);
    });
  }

  it('throws after it is closed', async () => {
    await using scene = aScene();
    const directory = await Directory.open(scene.dir);
    await directory![Symbol.asyncDispose]();
    await assert.rejects(async () => directory!.child('node-1'), /only while it is open/);
    await assert.rejects(async () => directory!.names(), /only while it is open/);
  });

  it('removes links but not their targets', async () => {
    await using scene = aScene();
    writeFileSync(join(scene.dir, 'kept'), '');
    mkdirSync(join(scene.dir, 'gone'));
    symlinkSync(join(scene.dir, 'kept'), join(scene.dir, 'gone', 'link'));
    await using directory = await Directory.open(scene.dir);

    await directory!.removeChild('gone');
    await directory!.removeChild('gone');

    assert.equal(existsSync(join(scene.dir, 'gone')), false);
    assert.equal(existsSync(join(scene.dir, 'kept')), true);
  });

  it('removes a tree recursively but not the targets of links', async () => {
    await using scene = aScene();
    const path = join(scene.dir, 'place');
    mkdirSync(join(path, 'tree/tpm/deep'), { recursive: true });
    mkdirSync(join(path, 'beside'));
    for (const file of ['tree/nvram.fd', 'tree/tpm/deep/file', 'beside/file']) writeFileSync(join(path, file), '');
    symlinkSync('../../beside', join(path, 'tree/tpm/link'));
    await using directory = await Directory.open(path);

    await directory!.removeTree('tree');
    await directory!.removeTree('tree');

    assert.deepEqual(readdirSync(path), ['beside']);
    assert.deepEqual(readdirSync(join(path, 'beside')), ['file']);
  });
});
