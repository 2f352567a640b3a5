import assert from 'node:assert/strict';
import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { it } from 'node:test';
import { floorBytes, freeBytes, storageSize } from '#node/volumes/local/free-space.ts';

const GIB = 2 ** 30;

it('the floor is a twentieth of the file system, at most a gibibyte', () => {
  assert.equal(floorBytes(10 * GIB), GIB / 2);
  assert.equal(floorBytes(1000 * GIB), GIB);
});

it('the floor is not free space, and no volume can be larger than the file system without it', async () => {
  const { blocks, bsize, bavail } = await statfs(tmpdir());
  assert.ok((await freeBytes(tmpdir())) <= bavail * bsize);
  const { nodeBytes } = await storageSize(tmpdir(), tmpdir());
  assert.ok(nodeBytes < blocks * bsize);
});
