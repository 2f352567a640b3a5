import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Chipset } from '#api/devices/chipset.ts';
import { busOf, isHotpluggable } from '#api/devices/disk-bus.ts';
import type { Disk } from '#api/domain/disk.ts';

const buses: Record<string, [Partial<Disk>, Chipset | undefined, string]> = {
  'a disk without a bus': [{}, 'q35', 'virtio'],
  'a disk with a bus': [{ disk: { bus: 'sata' } }, 'q35', 'sata'],
  'a CD-ROM on q35': [{ cdrom: {} }, 'q35', 'sata'],
  'a CD-ROM on i440fx': [{ cdrom: {} }, 'i440fx', 'ide'],
  'a CD-ROM of an unknown chipset': [{ cdrom: {} }, undefined, 'sata'],
  'a CD-ROM with a bus': [{ cdrom: { bus: 'scsi' } }, 'i440fx', 'scsi'],
  'a floppy': [{ floppy: {} }, 'i440fx', 'fdc'],
  'a LUN': [{ lun: {} }, 'q35', 'scsi'],
};

for (const [what, [disk, chipset, bus]] of Object.entries(buses)) {
  test(`${what} is on ${bus}`, () => assert.equal(busOf({ name: 'd', ...disk }, chipset), bus));
}

const hotplugCases: Record<string, [Partial<Disk>, hotpluggable: boolean, boolean]> = {
  'a virtio disk on a hotpluggable claim can be hotplugged': [{}, true, true],
  'a SCSI disk on a hotpluggable claim can be hotplugged': [{ disk: { bus: 'scsi' } }, true, true],
  'a LUN on a hotpluggable claim can be hotplugged': [{ lun: {} }, true, true],
  'a disk on a claim that is not hotpluggable cannot be hotplugged': [{}, false, false],
  'a SATA disk cannot be hotplugged': [{ disk: { bus: 'sata' } }, true, false],
  'a boot disk cannot be hotplugged': [{ bootOrder: 1 }, true, false],
  'a CD-ROM cannot be hotplugged': [{ cdrom: { bus: 'scsi' } }, true, false],
  'a floppy cannot be hotplugged': [{ floppy: {} }, true, false],
};

for (const [sentence, [disk, hotpluggable, want]] of Object.entries(hotplugCases)) {
  test(sentence, () => {
    const volume = { name: 'd', persistentVolumeClaim: { claimName: 'c', hotpluggable } };
    assert.equal(isHotpluggable({ name: 'd', ...disk }, volume), want);
  });
}

test('a disk without a volume cannot be hotplugged', () =>
  assert.equal(isHotpluggable({ name: 'd' }, undefined), false));
