/** Paths to a file. test/e2e/hypervisor-qemu.test.ts shows that QEMU can walk them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { directoriesBetween, maySearch } from '#node/hypervisor/qemu/process/file-access.ts';

const ways: Record<string, { from: string; file: string; want: string[] }> = {
  'up to a common directory, and down': {
    from: '/data/node/domains/id/run',
    file: '/data/node/snapshots/one/disk.img',
    want: [
      '/data/node/domains/id/run',
      '/data/node/domains/id',
      '/data/node/domains',
      '/data/node',
      '/data/node/snapshots',
      '/data/node/snapshots/one',
    ],
  },
  'only down': { from: '/data', file: '/data/one/disk.img', want: ['/data', '/data/one'] },
  'in the same directory': { from: '/data', file: '/data/disk.img', want: ['/data'] },
  'through the root': { from: '/dev', file: '/data/disk.img', want: ['/dev', '/', '/data'] },
};

for (const [name, { from, file, want }] of Object.entries(ways)) {
  test(`lists the directories of a path: ${name}`, () => assert.deepEqual(directoriesBetween(from, file), want));
}

const searches: Record<string, { uid: number; gid: number; mode: number; want: boolean }> = {
  'all users may search it': { uid: 0, gid: 0, mode: 0o711, want: true },
  'only the owner may search it': { uid: 0, gid: 0, mode: 0o700, want: false },
  'the group may search it': { uid: 0, gid: 7, mode: 0o710, want: true },
  'all but the group may search it': { uid: 0, gid: 7, mode: 0o701, want: false },
  'the owner may search it': { uid: 7, gid: 0, mode: 0o100, want: true },
  'all but the owner may search it': { uid: 7, gid: 7, mode: 0o011, want: false },
};

for (const [name, { want, ...stats }] of Object.entries(searches)) {
  test(`checks access to a directory: ${name}`, () => assert.equal(maySearch(stats, { uid: 7, gid: 7 }), want));
}
