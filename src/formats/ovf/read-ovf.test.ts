import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FileFormatError } from '#formats/findings.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { placesOf } from '#formats/testing/places-of.ts';
import {
  DISK_1,
  IMAGE_1,
  DISK_2,
  IMAGE_2,
  NIC_1,
  NIC_2,
  VM_ID,
  block,
  disk,
  diskItem,
  file,
  item,
  nicItem,
  ovirtOvf,
  pci,
  plugged,
} from '#formats/testing/ovirt-ovf.ts';

test('reads devices, addresses, flags and boot order of an OVF of oVirt 4.1', () => {
  const machine = readOvf(ovirtOvf());
  assert.equal(machine.name, 'web-server-1');
  assert.equal(machine.uuid, VM_ID);
  assert.deepEqual(machine.cpu, { sockets: 2, cores: 2, threads: 1 });
  assert.equal(machine.memoryMib, 2048);
  assert.equal(machine.chipset, 'i440fx');
  assert.equal(machine.firmware, 'bios');
  assert.deepEqual(machine.source, { format: 'ovf', product: 'oVirt', version: '4.1.0.0' });
  assert.deepEqual(machine.disks, [
    {
      id: 'disk-web-disk2',
      name: 'web-disk2',
      media: 'disk',
      bus: 'virtio',
      file: `${DISK_1}/${IMAGE_1}`,
      sizeBytes: 10 * 1024 ** 3,
      format: 'raw',
      readonly: false,
      plugged: true,
      optional: false,
    },
    {
      id: 'disk-web-disk1',
      name: 'web-disk1',
      media: 'disk',
      bus: 'scsi',
      file: `${DISK_2}/${IMAGE_2}`,
      sizeBytes: 10 * 1024 ** 3,
      format: 'raw',
      bootOrder: 2,
      readonly: false,
      plugged: true,
      optional: false,
    },
    {
      id: 'disk-cdrom',
      name: 'cdrom',
      media: 'cdrom',
      bus: 'ide',
      format: 'raw',
      bootOrder: 1,
      readonly: true,
      plugged: true,
      optional: false,
    },
  ]);
  assert.deepEqual(machine.nics, [
    { id: 'nic-nic1', name: 'nic1', model: 'virtio', mac: '00:1a:4a:16:01:51', network: 'ovirtmgmt', plugged: true },
    { id: 'nic-nic2', name: 'nic2', model: 'e1000', mac: '00:1a:4a:16:01:52', network: 'ovirtmgmt', plugged: false },
  ]);
  const rows = new Map(machine.rows.map((row) => [row.id, row]));
  const at = (slot: string, fn = '0x0') => ({ type: 'pci', domain: '0x0000', bus: '0x00', slot, function: fn });
  assert.deepEqual(rows.get('disk-web-disk2')?.address, at('0x07'));
  assert.deepEqual(rows.get('nic-nic2'), {
    id: 'nic-nic2',
    type: 'interface',
    device: 'e1000',
    name: 'nic2',
    address: at('0x09'),
    managed: true,
    plugged: false,
  });
  assert.deepEqual(rows.get('scsi0'), {
    id: 'scsi0',
    type: 'controller',
    device: 'virtio-scsi',
    address: at('0x05'),
    managed: true,
    specParams: { index: '0', model: 'virtio-scsi' },
  });
  assert.deepEqual(rows.get('balloon0')?.managed, true);
  assert.deepEqual(rows.get('channel0'), {
    id: 'channel0',
    type: 'channel',
    device: 'unix',
    address: { type: 'virtio-serial', bus: '0', controller: '0', port: '1' },
    managed: false,
  });
  assert.deepEqual(rows.get('ide0'), {
    id: 'ide0',
    type: 'controller',
    device: 'ide',
    address: at('0x01', '0x1'),
    managed: false,
    specParams: { a: { b: '1', c: '2' } },
  });
  assert.deepEqual(rows.get('video0')?.specParams, { vram: '32768', heads: '1' });
  assert.deepEqual(rows.get('graphics0')?.address, undefined);
  assert.ok(machine.notes.some((note) => note.includes('Description')));
});

test('reads an OVF of oVirt 3.0, with the addresses of its hosts and a boot order from the sequence', () => {
  const items = [
    nicItem('3', 'nic2', '00:1a:4a:00:00:02', '', 2),
    nicItem('4', 'nic1', '00:1a:4a:00:00:01', '', 1),
    diskItem(DISK_1, IMAGE_1),
    diskItem(DISK_2, IMAGE_2),
    item(20, '5', '<rasd:VirtualQuantity>2</rasd:VirtualQuantity>'),
    item(23, '6', '<rasd:UsbPolicy>Disabled</rasd:UsbPolicy>'),
  ];
  const disks =
    disk(DISK_1, IMAGE_1, 'web_Disk1', 'ovf:disk-interface="IDE" ovf:boot="false"') +
    disk(DISK_2, IMAGE_2, 'web_Disk2', 'ovf:disk-interface="IDE" ovf:boot="true"');
  const machine = readOvf(
    ovirtOvf({ version: '3.0.0.0', items: items.join(''), disks }).replace(
      '<default_boot_sequence>1<',
      '<default_boot_sequence>4<',
    ),
  );
  assert.deepEqual(
    machine.disks.map(({ id, bus, bootOrder }) => [id, bus, bootOrder]),
    [
      ['disk-web-disk2', 'ide', 1],
      ['disk-web-disk1', 'ide', undefined],
    ],
  );
  assert.deepEqual(
    machine.nics.map(({ id, model, bootOrder }) => [id, model, bootOrder]),
    [
      ['nic-nic1', 'rtl8139', 2],
      ['nic-nic2', 'e1000', 3],
    ],
  );
  assert.deepEqual(placesOf(machine), {
    video0: '0000:00:02.0',
    'nic-nic1': '0000:00:03.0',
    'nic-nic2': '0000:00:04.0',
    'virtio-serial0': '0000:00:05.0',
    'disk-web-disk2': 'drive 0:0:0:0',
    'disk-web-disk1': 'drive 0:0:0:1',
  });
  assert.equal(machine.rows.find(({ id }) => id === 'video0')?.device, 'qxl');
});

test('ignores device data in an OVF of oVirt 3.0, with a note', () => {
  const machine = readOvf(ovirtOvf({ version: '3.0.0.0' }));
  assert.equal(placesOf(machine)['nic-nic1'], '0000:00:03.0');
  assert.ok(machine.nics.every(({ plugged }) => plugged));
  assert.match(machine.notes.join('\n'), /version 3\.0\.0\.0 have no device data/);
});

test('reads BiosType, machine type, serial and boot orders of an OVF of oVirt 4.4', () => {
  const settings =
    '<BiosType>3</BiosType><CustomEmulatedMachine>pc-q35-rhel8.4.0</CustomEmulatedMachine><SerialNumberPolicy>2</SerialNumberPolicy><CustomSerialNumber>SN-1</CustomSerialNumber>';
  const order = (n: number) => `<BootOrder>${n}</BootOrder>`;
  const port = block(
    'controller',
    'pci',
    pci('0x02'),
    '<SpecParams><index>1</index><model>pcie-root-port</model></SpecParams>',
  );
  const items = [
    diskItem(
      DISK_1,
      IMAGE_1,
      block('disk', 'disk', '{type=pci, slot=0x00, bus=0x01, domain=0x0000, function=0x0}', order(2)),
    ),
    diskItem(DISK_2, IMAGE_2, block('disk', 'disk', '', order(0))),
    nicItem(NIC_1, 'nic1', '56:6f:00:00:00:01', block('interface', 'bridge', '', order(1)), 2),
    item(0, 'p', port),
    item(0, 't', block('tpm', 'tpm')),
    item(0, 'c', block('console', 'console', '', '<SpecParams><consoleType>serial</consoleType></SpecParams>')),
  ];
  const machine = readOvf(ovirtOvf({ version: '4.4.0.0', settings, items: items.join('') }));
  assert.deepEqual(
    [machine.chipset, machine.firmware, machine.machineType, machine.serial, machine.tpm],
    ['q35', 'efi-secure', 'pc-q35-rhel8.4.0', 'SN-1', true],
  );
  assert.deepEqual(
    [...machine.disks, ...machine.nics].map(({ id, bootOrder }) => [id, bootOrder]),
    [
      ['disk-web-disk2', 2],
      ['disk-web-disk1', undefined],
      ['nic-nic1', 1],
    ],
  );
  assert.equal(machine.nics[0]?.model, 'e1000e', 'there is no e1000 with q35');
  assert.match(machine.notes.join('\n'), /it is replaced with e1000e/);
  assert.deepEqual(machine.rows.map(({ id, device }) => `${id} ${device}`).slice(3), [
    'rp0 pcie-root-port',
    'tpm0 crb',
    'serial0 serial',
  ]);
});

test('reads a LUN that only the disk section names', () => {
  const lun =
    '<Disk ovf:diskId="l1" ovf:disk-alias="San Disk" ovf:fileRef="LUN_360" ovf:disk-interface="VirtIO_SCSI" ovf:boot="false" ovf:plugged="true" ovf:lun_id="360014050000000000000000000000001"/>';
  const machine = readOvf(
    ovirtOvf({ disks: `${disk(DISK_1, IMAGE_1, 'web_Disk2')}${disk(DISK_2, IMAGE_2, 'web_Disk1')}${lun}` }),
  );
  assert.deepEqual(machine.disks.at(-1), {
    id: 'disk-san-disk',
    name: 'san-disk',
    media: 'lun',
    bus: 'scsi',
    format: 'raw',
    readonly: false,
    plugged: true,
    optional: false,
    lun: { guid: '360014050000000000000000000000001' },
  });
});

/** Contradictory and hostile files. */
const lun = (id: string) => `<Disk ovf:diskId="${id}" ovf:disk-alias="${id}" ovf:lun_id="3600"/>`;
const refused: Record<string, { ovf: string; errors: RegExp[] }> = {
  'two disks with the same LUN': {
    ovf: ovirtOvf({ disks: lun('a') + lun('b'), items: '' }),
    errors: [/two disks are the LUN "3600"/],
  },
  'another root element': {
    ovf: '<Envelope/>',
    errors: [/the root element is "Envelope"; expected an Envelope of OVF 1/],
  },
  'two machines': {
    ovf: ovirtOvf({ extra: '<Content xsi:type="ovf:VirtualSystem_Type"/>' }),
    errors: [/it contains 2 machines/],
  },
  'a collection': { ovf: ovirtOvf({ extra: '<VirtualSystemCollection/>' }), errors: [/a collection of machines/] },
  'entity declarations': { ovf: `<!DOCTYPE x [<!ENTITY a "b">]>${ovirtOvf()}`, errors: [/DOCTYPE/] },
  'two devices at the same address in different spellings': {
    ovf: ovirtOvf({
      items:
        diskItem(DISK_1, IMAGE_1, block('disk', 'disk', pci('0x07', 'old'))) +
        diskItem(DISK_2, IMAGE_2, block('disk', 'disk', '{type=pci, slot=7, bus=0x0, domain=0, function=0}')),
    }),
    errors: [/"disk-web-disk2" and "disk-web-disk1" are at the same address/],
  },
  'a repeated MAC address in different case, and an invalid one': {
    ovf: ovirtOvf({
      items:
        fullDisks() +
        nicItem(NIC_1, 'a', '00:1A:4A:00:00:01') +
        nicItem(NIC_2, 'b', '00:1a:4a:00:00:01') +
        nicItem('5', 'c', '01:00:00:00:00:01'),
    }),
    errors: [/two interfaces have the MAC address 00:1a:4a:00:00:01/, /"01:00:00:00:00:01" is not a valid MAC address/],
  },
  'the same boot order twice': {
    ovf: ovirtOvf({
      items:
        diskItem(DISK_1, IMAGE_1, '<BootOrder>1</BootOrder>') + diskItem(DISK_2, IMAGE_2, '<BootOrder>1</BootOrder>'),
    }),
    errors: [/two devices have the boot order 1/],
  },
  'a disk without a file, and a missing file': {
    ovf: ovirtOvf({
      files: file(DISK_1, IMAGE_1),
      disks: `<Disk ovf:diskId="${IMAGE_1}" ovf:size="1"/>${disk(DISK_2, IMAGE_2, 'b')}`,
    }),
    errors: [/has no file/, /which is missing/],
  },
  'a device without its disk, and a disk without a device': {
    ovf: ovirtOvf({ items: diskItem(DISK_1, IMAGE_1) + diskItem('x', 'y') }),
    errors: [/its disk is missing/, /"web_Disk1" belongs to no device/],
  },
  'two devices with the same disk': {
    ovf: ovirtOvf({ items: fullDisks() + diskItem(DISK_1, IMAGE_1) }),
    errors: [/two devices have the disk "web_Disk2"/],
  },
  'a path that leads outside': {
    ovf: ovirtOvf().replaceAll(`${DISK_1}/${IMAGE_1}`, '../../etc/shadow'),
    errors: [/"\.\.\/\.\.\/etc\/shadow" leads outside/],
  },
  'an absolute path': {
    ovf: ovirtOvf().replaceAll(`${DISK_1}/${IMAGE_1}`, '/etc/shadow'),
    errors: [/is not a relative path/],
  },
  'a Windows path': {
    ovf: ovirtOvf().replaceAll(`${DISK_1}/${IMAGE_1}`, 'a\\..\\b'),
    errors: [/is not a relative path/],
  },
  'a URL': {
    ovf: ovirtOvf().replaceAll(`${DISK_1}/${IMAGE_1}`, 'http://evil/x'),
    errors: [/is a URL/],
  },
  'a repeated file': {
    ovf: ovirtOvf({ files: file(DISK_1, IMAGE_1) + file(DISK_1, IMAGE_1) + file(DISK_2, IMAGE_2) }),
    errors: [/two files have the id/, /two files have the href/],
  },
  'a file that is larger than its disk': {
    ovf: ovirtOvf({ files: file(DISK_1, IMAGE_1, 11 * 1024 ** 3) + file(DISK_2, IMAGE_2) }),
    errors: [/has 10737418240 bytes, but its file has 11811160064/],
  },
  'invalid sizes': {
    ovf: ovirtOvf({ files: file(DISK_1, IMAGE_1) + file(DISK_2, IMAGE_2) }).replaceAll(
      'ovf:size="10"',
      'ovf:size="99999999999999999999"',
    ),
    errors: [/the size "99999999999999999999" is invalid/],
  },
  'a snapshot': {
    ovf: ovirtOvf().replace('ovf:parentRef=""', 'ovf:parentRef="x"'),
    errors: [/has a parent disk \(a snapshot\)/],
  },
  'CPUs that do not add up': {
    ovf: ovirtOvf().replace('<rasd:VirtualQuantity>4<', '<rasd:VirtualQuantity>5<'),
    errors: [/there are 5 CPUs, but 2 sockets of 2 cores/],
  },
  'no memory, and no CPU': {
    ovf: ovirtOvf().replace('<rasd:ResourceType>3<', '<rasd:ResourceType>4<'),
    errors: [/0 Items of CPUs/, /2 Items of memory/],
  },
  'an unreadable address, and an invalid one': {
    ovf: ovirtOvf({
      items:
        fullDisks() +
        nicItem(NIC_1, 'a', '00:1a:4a:00:00:01', block('interface', 'bridge', '{slot=1, slot=2}')) +
        item(0, 'v', block('sound', 'ich6', pci('0x20'))),
    }),
    errors: [/is not an address/, /slot "0x20" is not valid in an address/],
  },
  'flags that are neither true nor false': {
    ovf: ovirtOvf({ items: diskItem(DISK_1, IMAGE_1, '<IsPlugged>maybe</IsPlugged>') + diskItem(DISK_2, IMAGE_2) }),
    errors: [/IsPlugged is "maybe"/],
  },
  'a repeated key of SpecParams': {
    ovf: ovirtOvf({
      items: fullDisks() + item(0, 'v', block('sound', 'ich6', '', '<SpecParams><a>1</a><a>2</a></SpecParams>')),
    }),
    errors: [/a key of SpecParams appears twice/],
  },
  'words that are also names of functions': {
    ovf: ovirtOvf({ items: fullDisks() + item(15, 'v', block('disk', 'constructor', '{type=constructor, a=b}')) })
      .replace('MegaBytes', 'constructor')
      .replace('<default_boot_sequence>1<', '<default_boot_sequence>__proto__<'),
    errors: [/the unit of memory "constructor" is unknown/, /"__proto__" is not a valid boot sequence/],
  },
  'a repeated name': { ovf: ovirtOvf({ settings: '<Name>other</Name>' }), errors: [/Name appears twice/] },
  'too many devices': {
    ovf: ovirtOvf({ items: item(0, 'x', block('sound', 'ich6')).repeat(3000) }),
    errors: [/there are 3002 devices, more than 2048/],
  },
};

function fullDisks(): string {
  return diskItem(DISK_1, IMAGE_1, plugged()) + diskItem(DISK_2, IMAGE_2, plugged());
}

for (const [name, { ovf, errors }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    assert.throws(
      () => readOvf(ovf),
      (error: unknown) => {
        assert.ok(error instanceof FileFormatError, String(error));
        const text = error.errors.join('\n');
        for (const pattern of errors) assert.match(text, pattern);
        return true;
      },
    );
  });
}

test('accepts an unplugged interface with the address of another one', () => {
  const same = pci('0x07');
  const items =
    fullDisks() +
    nicItem(NIC_1, 'a', '00:1a:4a:00:00:01', block('interface', 'bridge', same)) +
    nicItem(NIC_2, 'b', '00:1a:4a:00:00:02', block('interface', 'bridge', same, '<IsPlugged>false</IsPlugged>'));
  assert.equal(readOvf(ovirtOvf({ items })).nics.length, 2);
});
