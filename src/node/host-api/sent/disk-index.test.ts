import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assignDiskIndexes, lowestFreeIndex, type IndexedDisk } from '#node/host-api/sent/disk-index.ts';

const free: readonly (readonly [readonly number[], number])[] = [
  [[], 0],
  [[0], 1],
  [[1, 2], 0],
  [[0, 2], 1],
  [[0, 1], 2],
];

for (const [used, want] of free) {
  test(`the lowest free index beside ${JSON.stringify(used)} is ${want}`, () => {
    assert.equal(lowestFreeIndex(new Set(used)), want);
  });
}

const disk = (iface: string, index?: number, media = 'disk'): IndexedDisk => ({ iface, index, media, field: iface });

const cases: Record<string, { disks: IndexedDisk[]; before?: IndexedDisk[]; want: number[]; errors?: string[] }> = {
  'counts sata and scsi disks together': { disks: [disk('scsi', 1), disk('sata')], want: [1, 0] },
  'counts the disks of each kind of bus separately': {
    disks: [disk('scsi'), disk('sata'), disk('ide')],
    want: [0, 1, 0],
  },
  'keeps an index that was sent, regardless of the order': { disks: [disk('virtio'), disk('virtio', 0)], want: [1, 0] },
  'gives index 2 to a CD-ROM drive on ide': { disks: [disk('ide'), disk('ide', undefined, 'cdrom')], want: [0, 2] },
  'leaves index 2 on ide to the CD-ROM drive': {
    disks: [disk('ide'), disk('ide'), disk('ide'), disk('ide', undefined, 'cdrom')],
    want: [0, 1, 3, 2],
  },
  'gives a hotplugged disk the lowest free index': {
    disks: [disk('virtio')],
    before: [disk('virtio', 0), disk('virtio', 2)],
    want: [1],
  },
  'refuses two disks with the same index': {
    disks: [disk('virtio', 1), disk('virtio', 1)],
    want: [1, 1],
    errors: ['virtio.index: 1 is already used by another disk on virtio'],
  },
  'refuses a fifth disk on ide': {
    disks: [disk('ide', 4)],
    want: [4],
    errors: ['ide.index: 4 is too high; ide has 4 disks, starting at 0'],
  },
};

for (const [name, { disks, before, want, errors: expected = [] }] of Object.entries(cases)) {
  test(name, () => {
    const errors: string[] = [];
    assert.deepEqual(assignDiskIndexes(disks, errors, before), want);
    assert.deepEqual(errors, expected);
  });
}
