import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Chipset } from '#api/chipset.ts';
import { busOf, isMovable } from '#api/disk-bus.ts';
import type { Disk } from '#api/domain/disk.ts';

const buses: Record<string, [Partial<Disk>, Chipset | undefined, string]> = {
  'a disk that says nothing': [{}, 'q35', 'virtio'],
  'a disk that names it': [{ disk: { bus: 'sata' } }, 'q35', 'sata'],
  'a CD-ROM on q35': [{ cdrom: {} }, 'q35', 'sata'],
  'a CD-ROM on i440fx': [{ cdrom: {} }, 'i440fx', 'ide'],
  'a CD-ROM of a machine that nobody knows': [{ cdrom: {} }, undefined, 'sata'],
  'a CD-ROM that names it': [{ cdrom: { bus: 'scsi' } }, 'i440fx', 'scsi'],
  'a floppy': [{ floppy: {} }, 'i440fx', 'fdc'],
  'a LUN': [{ lun: {} }, 'q35', 'scsi'],
};

for (const [what, [disk, chipset, bus]] of Object.entries(buses)) {
  test(`${what} is on ${bus}`, () => assert.equal(busOf({ name: 'd', ...disk }, chipset), bus));
}

const moves: Record<string, [Partial<Disk>, hotpluggable: boolean, boolean]> = {
  'a virtio disk on a hotpluggable claim comes and goes': [{}, true, true],
  'so does a SCSI disk': [{ disk: { bus: 'scsi' } }, true, true],
  'and a LUN': [{ lun: {} }, true, true],
  'not where the claim is not hotpluggable': [{}, false, false],
  'not on SATA': [{ disk: { bus: 'sata' } }, true, false],
  'not where it is booted from': [{ bootOrder: 1 }, true, false],
  'no CD-ROM': [{ cdrom: { bus: 'scsi' } }, true, false],
  'no floppy': [{ floppy: {} }, true, false],
};

for (const [sentence, [disk, hotpluggable, want]] of Object.entries(moves)) {
  test(sentence, () => {
    const volume = { name: 'd', persistentVolumeClaim: { claimName: 'c', hotpluggable } };
    assert.equal(isMovable({ name: 'd', ...disk }, volume), want);
  });
}

test('a disk without its volume stays', () => assert.equal(isMovable({ name: 'd' }, undefined), false));
