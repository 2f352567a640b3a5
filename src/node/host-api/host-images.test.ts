import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { openHostImages, type MediumOptions } from '#node/host-api/host-images.ts';
import { startHostScene } from '#node/host-api/testing/host-scene.ts';

/** Returns a qcow2 header, version 3, without features that we refuse. */
function qcow2(backing = 0n): Buffer {
  const header = Buffer.alloc(112);
  header.writeUInt32BE(0x514649fb, 0);
  header.writeUInt32BE(3, 4);
  header.writeBigUInt64BE(backing, 8);
  header.writeBigUInt64BE(4096n, 24);
  return header;
}

async function startImages(t: TestContext) {
  const { dir, image } = await startHostScene(t);
  const images = await openHostImages({ nodeDir: join(dir, '..') });
  const find = async (path: string, options: MediumOptions = { readonly: false }) => {
    const found = await images.find({ is: 'file', names: path.split('/') }, options);
    return found.medium === undefined ? found.error.replaceAll(images.dir, 'DIR') : found.medium.source.format;
  };
  return { dir: images.dir, image, find };
}

test('detects the format of a file, unless the caller says that it is raw', async (t) => {
  const { image, find } = await startImages(t);
  image('a/raw.img');
  image('cow.img', qcow2());
  assert.equal(await find('a/raw.img'), 'raw');
  assert.equal(await find('cow.img'), 'qcow2');
  assert.equal(await find('cow.img', { readonly: false, format: 'raw' }), 'raw');
  assert.equal(await find('a/raw.img', { readonly: true, format: 'qcow2' }), '"DIR/a/raw.img" is not a qcow2 image');
});

test('refuses an image that refers to another file, unless the caller says that it is raw', async (t) => {
  const { image, find } = await startImages(t);
  image('bad.img', qcow2(104n));
  assert.match(await find('bad.img'), /names a backing file/);
  assert.equal(await find('bad.img', { readonly: false, format: 'raw' }), 'raw');
});

test('does not follow symbolic links', async (t) => {
  const { dir, find } = await startImages(t);
  const outside = join(dir, '..', 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'secret'), 'x');
  symlinkSync(outside, join(dir, 'way'));
  symlinkSync(join(outside, 'secret'), join(dir, 'end'));
  assert.equal(await find('way/secret'), '"DIR/way/secret" is behind a symbolic link');
  assert.match(await find('end'), /it is a link or a directory; expected a file/);
  assert.equal(await find('none/secret'), '"DIR/none/secret" does not exist');
  assert.match(await find('none'), /it does not exist$/);
});
