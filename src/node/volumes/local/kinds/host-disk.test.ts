import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseHostDiskPath, prepareHostDisk } from '#node/volumes/local/kinds/host-disk.ts';
import { aScene } from '#node/volumes/local/testing/volumes-scene.ts';

const places: Record<string, { path: string; want: object | undefined }> = {
  'accepts a file in an allowed directory': {
    path: '/disks/a.img',
    want: { root: '/disks', directories: [], file: 'a.img' },
  },
  'accepts a file in a subdirectory': {
    path: '/disks/team/a.img',
    want: { root: '/disks', directories: ['team'], file: 'a.img' },
  },
  'accepts a file in the second allowed directory': {
    path: '/more/disks/a.img',
    want: { root: '/more/disks', directories: [], file: 'a.img' },
  },
  'refuses a path with ..': { path: '/disks/../etc/shadow', want: undefined },
  'refuses a directory with the same prefix': { path: '/disks-of-others/a.img', want: undefined },
  'refuses the allowed directory itself': { path: '/disks', want: undefined },
  'refuses a directory': { path: '/disks/a/', want: undefined },
  'refuses relative paths': { path: 'disks/a.img', want: undefined },
  'refuses other files': { path: '/etc/shadow', want: undefined },
};

describe('host disk', () => {
  for (const [sentence, { path, want }] of Object.entries(places)) {
    it(sentence, () => assert.deepEqual(parseHostDiskPath(path, ['/disks', '/more/disks']), want));
  }

  it('refuses a path outside of the allowed directories', async () => {
    await using scene = aScene();
    const path = join(scene.dir, 'node-1', 'secret.img');
    const prepared = await prepareHostDisk({ path, type: 'DiskOrCreate', capacity: '4Ki' }, 'default', scene.host);
    assert.equal(prepared.is === 'failed' && prepared.reason, 'HostDiskForbidden');
    assert.equal(existsSync(path), false);
  });

  it('refuses links in the path', async () => {
    await using scene = aScene();
    const disks = join(scene.dir, 'host-disks', 'default');
    mkdirSync(disks);
    mkdirSync(join(scene.dir, 'outside'));
    writeFileSync(join(scene.dir, 'outside', 'a.img'), 'secret');
    symlinkSync(join(scene.dir, 'outside'), join(disks, 'way'));
    symlinkSync(join(scene.dir, 'outside', 'a.img'), join(disks, 'end.img'));

    const way = await prepareHostDisk({ path: join(disks, 'way', 'a.img'), type: 'Disk' }, 'default', scene.host);
    const end = await prepareHostDisk({ path: join(disks, 'end.img'), type: 'Disk' }, 'default', scene.host);

    assert.equal(way.is, 'failed');
    assert.equal(end.is, 'failed');
  });

  it('creates a file only if its type allows it, and keeps an existing one', async () => {
    await using scene = aScene();
    const path = join(scene.dir, 'host-disks', 'default', 'a.img');

    const missing = await prepareHostDisk({ path, type: 'Disk' }, 'default', scene.host);
    assert.equal(missing.is === 'waiting' && missing.reason, 'ImageMissing');
    assert.equal((await prepareHostDisk({ path, type: 'DiskOrCreate' }, 'default', scene.host)).is, 'failed');

    const made = await prepareHostDisk({ path, type: 'DiskOrCreate', capacity: '1Mi' }, 'default', scene.host);
    assert.equal(made.is, 'ready');
    assert.equal(statSync(path).size, 1024 * 1024);

    const again = await prepareHostDisk({ path, type: 'DiskOrCreate', capacity: '2Mi' }, 'default', scene.host);
    assert.deepEqual(again, made);
    assert.equal(statSync(path).size, 1024 * 1024);
  });

  it('belongs to one namespace: another one can neither read nor create it', async () => {
    await using scene = aScene();
    const disks = join(scene.dir, 'host-disks');
    const path = join(disks, 'team-a', 'a.img');
    const disk = { path, type: 'DiskOrCreate', capacity: '4Ki' } as const;
    const reasonOf = async (given: typeof disk | { path: string; type: 'Disk' }, namespace: string) => {
      const prepared = await prepareHostDisk(given, namespace, scene.host);
      return prepared.is === 'ready' ? 'ready' : `${prepared.reason}: ${prepared.message}`;
    };
    assert.equal(await reasonOf(disk, 'team-a'), 'ready');
    const roundabout = `${disks}/team-b/../team-a/a.img`;
    for (const other of [disk, { path: roundabout, type: 'Disk' as const }]) {
      assert.match(
        await reasonOf(other, 'team-b'),
        /^HostDiskForbidden: .*instances of namespace "team-b" can use files below ".*host-disks\/team-b"; move the file there/,
      );
    }
    const stray = join(disks, 'team-c', 'new.img');
    assert.match(await reasonOf({ ...disk, path: stray }, 'team-b'), /^HostDiskForbidden/);
    assert.equal(existsSync(join(disks, 'team-c')), false);
  });

  it('may be elsewhere if the administrator has allowed it for the namespace', async () => {
    await using scene = aScene();
    const disks = join(scene.dir, 'host-disks');
    const path = join(disks, 'legacy.img');
    writeFileSync(path, Buffer.alloc(4096));
    const stateOf = async (namespace: string) =>
      (await prepareHostDisk({ path, type: 'Disk' }, namespace, scene.host)).is;
    assert.equal(await stateOf('team-a'), 'failed');
    writeFileSync(join(disks, 'allowed.txt'), 'team-a legacy.img\nteam-b legacy.img.old\n');
    assert.deepEqual([await stateOf('team-a'), await stateOf('team-b')], ['ready', 'failed']);
    rmSync(join(disks, 'allowed.txt'));
    writeFileSync(join(scene.dir, 'elsewhere'), 'team-b legacy.img\n');
    symlinkSync(join(scene.dir, 'elsewhere'), join(disks, 'allowed.txt'));
    assert.equal(await stateOf('team-b'), 'failed');
  });
});
