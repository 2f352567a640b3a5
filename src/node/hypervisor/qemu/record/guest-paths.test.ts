import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { guestPath } from '#node/hypervisor/qemu/record/guest-paths.ts';

const dir = new DomainDir('/node/domains', 'a-uid');

const cases: Record<string, { path: string; want: string }> = {
  'a disk of the domain': { path: '/node/domains/a-uid/volumes/x.img', want: '../volumes/x.img' },
  'a file in the working directory': { path: '/node/domains/a-uid/run/nvram.fd', want: 'nvram.fd' },
  'a disk elsewhere': { path: '/node/volumes/a/disk.img', want: '/node/volumes/a/disk.img' },
  'a disk of a domain whose id begins the same': {
    path: '/node/domains/a-uid-2/x.img',
    want: '/node/domains/a-uid-2/x.img',
  },
};

for (const [name, { path, want }] of Object.entries(cases)) {
  test(`returns the path for QEMU: ${name}`, () => assert.equal(guestPath(dir, path), want));
}
