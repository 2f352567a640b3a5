import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { DISK_1, DISK_2, IMAGE_1, IMAGE_2, disk, diskItem, item, ovirtOvf } from '#formats/testing/ovirt-ovf.ts';
import { placesOf } from '#formats/testing/places-of.ts';

interface OldMachine {
  readonly settings?: string;
  readonly want: Readonly<Record<string, string>>;
}

const OLD_DISKS =
  disk(DISK_1, IMAGE_1, 'Drive 2', 'ovf:disk-interface="VirtIO" ovf:boot="false"') +
  disk(DISK_2, IMAGE_2, 'Drive 10', 'ovf:disk-interface="VirtIO" ovf:boot="false"');
const OLD_ITEMS = [
  diskItem(DISK_1, IMAGE_1),
  diskItem(DISK_2, IMAGE_2),
  item(20, '5', '<rasd:VirtualQuantity>1</rasd:VirtualQuantity>'),
];
/** The machine boots from the network. */
const oldOvf = (version: string, settings = '') =>
  ovirtOvf({ version, items: OLD_ITEMS.join(''), disks: OLD_DISKS, settings }).replace(
    '<default_boot_sequence>1<',
    '<default_boot_sequence>2<',
  );
const VIDEO_AND_SERIAL = { video0: '0000:00:02.0', 'virtio-serial0': '0000:00:03.0' };

const oldMachines: Record<string, OldMachine> = {
  'places disks after the controller of the agent, with names compared as text': {
    want: { ...VIDEO_AND_SERIAL, 'disk-drive-10': '0000:00:04.0', 'disk-drive-2': '0000:00:05.0' },
  },
  'adds a sound card to a desktop': {
    settings: '<VmType>0</VmType>',
    want: {
      video0: '0000:00:02.0',
      sound0: '0000:00:03.0',
      'virtio-serial0': '0000:00:04.0',
      'disk-drive-10': '0000:00:05.0',
      'disk-drive-2': '0000:00:06.0',
    },
  },
  'adds no sound card to a server': {
    settings: '<VmType>1</VmType>',
    want: { ...VIDEO_AND_SERIAL, 'disk-drive-10': '0000:00:04.0', 'disk-drive-2': '0000:00:05.0' },
  },
};

for (const [name, { settings = '', want }] of Object.entries(oldMachines)) {
  test(`an OVF of oVirt 3.0: ${name}`, () => {
    assert.deepEqual(placesOf(readOvf(oldOvf('3.0.0.0', settings))), want);
  });
}

test('adds an AC97 card to a desktop of oVirt 3.0 with Windows XP, with a note', () => {
  const ovf = oldOvf('3.0.0.0', '<VmType>0</VmType>');
  const machine = readOvf(ovf.replace('<Description>other<', '<Description>WindowsXP<'));
  assert.equal(machine.rows.find(({ id }) => id === 'sound0')?.device, 'ac97');
  assert.match(machine.notes.join('\n'), /added: sound ac97, controller virtio-serial/);
});

test('leaves the slot of the agent free in an OVF of oVirt 3.1 without addresses', () => {
  assert.deepEqual(placesOf(readOvf(oldOvf('3.1.0.0'))), {
    video0: '0000:00:02.0',
    'disk-drive-2': '0000:00:04.0',
    'disk-drive-10': '0000:00:05.0',
  });
});
