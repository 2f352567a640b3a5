import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { openHostImages, type MediumWish } from '#node/host-api/host-images.ts';
import { startHostScene } from '#node/host-api/testing/host-scene.ts';

/** A qcow2 header, version 3, without anything that we refuse. */
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
  const images = await openHostImages({ nodeDir: join(dir, '..'), guestUser: undefined });
  const find = async (path: string, wish: MediumWish = { readonly: false }) => {
    const found = await images.find({ is: 'file', names: path.split('/') }, wish);
    return found.medium === undefined ? found.fault.replaceAll(images.dir, 'DIR') : found.medium.source.format;
  };
  return { dir: images.dir, image, find };
}

test('a file is what it looks like, unless it is said to be raw', async (t) => {
  const { image, find } = await startImages(t);
  image('a/raw.img');
  image('cow.img', qcow2());
  assert.equal(await find('a/raw.img'), 'raw');
  assert.equal(await find('cow.img'), 'qcow2');
  assert.equal(await find('cow.img', { readonly: false, format: 'raw' }), 'raw');
  assert.equal(await find('a/raw.img', { readonly: true, format: 'qcow2' }), '"DIR/a/raw.img" is no qcow2 image');
});

test('an image that names another file is refused, unless it is said to be raw', async (t) => {
  const { image, find } = await startImages(t);
  image('bad.img', qcow2(104n));
  assert.match(await find('bad.img'), /names a backing file/);
  assert.equal(await find('bad.img', { readonly: false, format: 'raw' }), 'raw');
});

test('links lead nowhere', async (t) => {
  const { dir, find } = await startImages(t);
  const outside = join(dir, '..', 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'secret'), 'x');
  symlinkSync(outside, join(dir, 'way'));
  symlinkSync(join(outside, 'secret'), join(dir, 'end'));
  assert.equal(await find('way/secret'), 'a link is on the way to "DIR/way/secret"');
  assert.match(await find('end'), /it is a link or a directory; expected a file/);
  assert.equal(await find('none/secret'), 'there is no "DIR/none/secret"');
  assert.match(await find('none'), /there is none$/);
});
