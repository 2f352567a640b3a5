import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openSqliteStore } from '#engine/store/open-store.ts';
import { DiskReserve, FLOOR_BYTES } from '#engine/store/sqlite/disk-reserve.ts';
import { StoreFullError } from '#engine/store/store.ts';
import { put, remove } from '#engine/store/testing/test-bed.ts';

const MIB = 1024 * 1024;
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'selfsame-reserve-'));
});
afterEach(() => {
  // Fails if nothing is mounted there.
  spawnSync('umount', [directory]);
  rmSync(directory, { recursive: true, force: true });
});

describe('DiskReserve', () => {
  it('occupies its space while there is enough, and gives it up when a write fails', async () => {
    const file = join(directory, 'reserve');
    let free = 1000 * MIB;
    const reserve = new DiskReserve(file, { freeBytes: async () => free });
    await reserve.check();
    assert.equal(reserve.isScarce, false);
    assert.ok(statSync(file).blocks * 512 >= 16 * MIB);
    reserve.release();
    assert.equal(reserve.isScarce, true);
    assert.throws(() => statSync(file));
    free = FLOOR_BYTES;
    await reserve.check();
    assert.equal(reserve.isScarce, true);
    free = 1000 * MIB;
    await reserve.check();
    assert.equal(reserve.isScarce, false);
    assert.ok(statSync(file).size > 0);
  });

  it('accepts only deletions below the floor, before the disk is full', async () => {
    let free = FLOOR_BYTES - 1;
    const reserve = new DiskReserve(join(directory, 'reserve'), { freeBytes: async () => free });
    await reserve.check();
    assert.equal(reserve.isScarce, true);
    free = 1000 * MIB;
    await reserve.check();
    assert.equal(reserve.isScarce, false);
  });
});

/** Returns false if this machine does not let us mount a file system. */
function mountSmallDisk(): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', directory]).status === 0;
}

describe('the store on a disk that is full', () => {
  it('refuses to grow, and deletes with the space of the reserve', async (t) => {
    if (!mountSmallDisk()) return t.skip('cannot mount a small file system here');
    const file = join(directory, 'store.db');
    const reserve = new DiskReserve(`${file}-reserve`);
    const store = await openSqliteStore(file);
    const large = 'x'.repeat(100_000);
    for (let index = 0; index < 20; index++) await put(store, `a-${index}`, large);
    await reserve.check();
    await assert.rejects(writeFile(join(directory, 'guest-disk'), Buffer.alloc(64 * MIB)), { code: 'ENOSPC' });
    await assert.rejects(async () => {
      for (let index = 0; index < 1000; index++) await put(store, `b-${index}`, large);
    }, StoreFullError);
    for (let index = 0; index < 20; index++) await remove(store, `a-${index}`);
    await assert.rejects(put(store, 'c', large), StoreFullError);
    await store.close();
    const again = await openSqliteStore(file);
    assert.equal(again.get('pods', 'a-0'), undefined);
    await again.close();
  });
});
