import assert from 'node:assert/strict';
import { test } from 'node:test';
import { giveIndexes, nextIndex, type IndexedDisk } from '#node/host-api/disk-index.ts';

const free: readonly (readonly [readonly number[], number])[] = [
  [[], 0],
  [[0], 1],
  [[1, 2], 0],
  [[0, 2], 1],
  [[0, 1], 2],
];

for (const [taken, want] of free) {
  test(`the next index after ${JSON.stringify(taken)} is ${want}`, () => {
    assert.equal(nextIndex(new Set(taken)), want);
  });
}

const disk = (iface: string, index?: number, media = 'disk'): IndexedDisk => ({ iface, index, media, field: iface });

const cases: Record<string, { disks: IndexedDisk[]; before?: IndexedDisk[]; want: number[]; faults?: string[] }> = {
  'sata and scsi disks are counted together': { disks: [disk('scsi', 1), disk('sata')], want: [1, 0] },
  'each sort of bus has numbers of its own': { disks: [disk('scsi'), disk('sata'), disk('ide')], want: [0, 1, 0] },
  'what has an index keeps it, wherever it stands': { disks: [disk('virtio'), disk('virtio', 0)], want: [1, 0] },
  'a CD-ROM drive on ide is the third': { disks: [disk('ide'), disk('ide', undefined, 'cdrom')], want: [0, 2] },
  'disks on ide leave the third to the CD-ROM drive': {
    disks: [disk('ide'), disk('ide'), disk('ide'), disk('ide', undefined, 'cdrom')],
    want: [0, 1, 3, 2],
  },
  'a disk that comes later gets what is free': {
    disks: [disk('virtio')],
    before: [disk('virtio', 0), disk('virtio', 2)],
    want: [1],
  },
  'no two have one index': {
    disks: [disk('virtio', 1), disk('virtio', 1)],
    want: [1, 1],
    faults: ['virtio.index: 1 is that of another disk on virtio, too'],
  },
  'ide has four': { disks: [disk('ide', 4)], want: [4], faults: ['ide.index: 4 is too much; ide has 4, from 0 on'] },
};

for (const [name, { disks, before, want, faults: expected = [] }] of Object.entries(cases)) {
  test(name, () => {
    const faults: string[] = [];
    assert.deepEqual(giveIndexes(disks, faults, before), want);
    assert.deepEqual(faults, expected);
  });
}
