/** The ways to a file; that QEMU can walk them is shown in test/e2e/hypervisor-qemu.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { directoriesBetween, maySearch } from './reach-file.ts';

const ways: Record<string, { from: string; file: string; want: string[] }> = {
  'up to where the ways meet, and down': {
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
  'over the root': { from: '/dev', file: '/data/disk.img', want: ['/dev', '/', '/data'] },
};

for (const [name, { from, file, want }] of Object.entries(ways)) {
  test(`a way passes directories: ${name}`, () => assert.deepEqual(directoriesBetween(from, file), want));
}

const searches: Record<string, { uid: number; gid: number; mode: number; want: boolean }> = {
  'everybody passes': { uid: 0, gid: 0, mode: 0o711, want: true },
  'nobody else passes': { uid: 0, gid: 0, mode: 0o700, want: false },
  'the group passes': { uid: 0, gid: 7, mode: 0o710, want: true },
  'all but the group pass': { uid: 0, gid: 7, mode: 0o701, want: false },
  'the owner passes': { uid: 7, gid: 0, mode: 0o100, want: true },
  'all but the owner pass': { uid: 7, gid: 7, mode: 0o011, want: false },
};

for (const [name, { want, ...stats }] of Object.entries(searches)) {
  test(`of a directory: ${name}`, () => assert.equal(maySearch(stats, { uid: 7, gid: 7 }), want));
}
