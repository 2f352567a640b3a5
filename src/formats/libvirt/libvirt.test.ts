import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress } from '#api/devices/device-address.ts';
import { FileFormatError } from '#formats/findings.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { writeLibvirt } from '#formats/libvirt/write-libvirt.ts';
import { arbitraryMachine } from '#formats/testing/arbitrary-machine.ts';
import { libvirtDomain } from '#formats/testing/libvirt-domain.ts';

test('reads hardware, addresses, boot order and firmware of a domain, and notes the rest', () => {
  const machine = readLibvirt(libvirtDomain());
  assert.deepEqual(
    {
      name: machine.name,
      uuid: machine.uuid,
      serial: machine.serial,
      machineType: machine.machineType,
      chipset: machine.chipset,
      cpu: machine.cpu,
      memoryMib: machine.memoryMib,
      firmware: machine.firmware,
      tpm: machine.tpm,
      source: machine.source,
    },
    {
      name: 'web-01',
      uuid: '7c6d3f1a-8a3b-4a57-9a31-6d8c54a60001',
      serial: 'SN 42',
      machineType: 'pc-q35-6.2',
      chipset: 'q35',
      cpu: { sockets: 1, cores: 2, threads: 2, model: 'host-passthrough' },
      memoryMib: 4096,
      firmware: 'efi-secure',
      tpm: true,
      source: { format: 'libvirt' },
    },
  );
  assert.deepEqual(machine.disks, [
    {
      id: 'disk-vda',
      name: 'vda',
      media: 'disk',
      bus: 'virtio',
      file: '/var/lib/libvirt/images/web.qcow2',
      format: 'qcow2',
      bootOrder: 1,
      readonly: false,
      plugged: true,
      optional: false,
      serial: 'WEB1',
      cache: 'none',
    },
    {
      id: 'disk-data',
      name: 'data',
      media: 'disk',
      bus: 'scsi',
      file: '/dev/vg/data',
      format: 'raw',
      readonly: true,
      plugged: true,
      optional: false,
    },
    {
      id: 'disk-sdb',
      name: 'sdb',
      media: 'cdrom',
      bus: 'sata',
      format: 'raw',
      readonly: true,
      plugged: true,
      optional: false,
    },
  ]);
  assert.deepEqual(machine.nics, [
    {
      id: 'nic-nic',
      name: 'nic',
      model: 'virtio',
      mac: '52:54:00:aa:bb:01',
      network: 'br0',
      bootOrder: 2,
      plugged: true,
    },
    { id: 'nic-nic-2', name: 'nic-2', model: 'e1000e', mac: '52:54:00:aa:bb:02', network: 'pod', plugged: true },
  ]);
  assert.deepEqual(
    machine.rows.map(({ id, type, device, managed }) => `${id} ${type}/${device} ${managed}`),
    [
      'disk-vda disk/disk true',
      'disk-data disk/disk true',
      'disk-sdb disk/cdrom true',
      'nic-nic interface/virtio true',
      'nic-nic-2 interface/e1000e true',
      'rp0 controller/pcie-root-port false',
      'rp1 controller/pcie-root-port false',
      'scsi0 controller/virtio-scsi false',
      'usb0 controller/usb false',
      'serial0 console/serial true',
      'channel0 channel/unix false',
      'input0 input/tablet false',
      'tpm0 tpm/crb true',
      'graphics0 graphics/vnc false',
      'video0 video/virtio false',
      'balloon0 balloon/memballoon true',
      'rng0 rng/virtio true',
      'hostdev0 hostdev/pci false',
      'virtio-serial0 controller/virtio-serial false',
    ],
  );
  const rows = new Map(machine.rows.map((row) => [row.id, row]));
  assert.deepEqual(rows.get('rp0')?.address, {
    type: 'pci',
    domain: '0x0000',
    bus: '0x00',
    slot: '0x02',
    function: '0x0',
    multifunction: 'on',
  });
  assert.equal(rows.get('nic-nic-2')?.address, undefined, 'another model is another device');
  const notes = machine.notes.join('\n');
  for (const note of [
    /vmxnet3.*e1000e/,
    /iotune/,
    /web\.qcow2/,
    /currentMemory/,
    /manufacturer/,
    /nvram/,
    /clock/,
    /hostdev pci.*only its address/,
    /panic/,
  ])
    assert.match(notes, note);
});

test('reads the boot devices of os if no device has a boot order, and IDE disks of i440fx', () => {
  const devices = `<disk device='disk'><source file='/a'/><target dev='hda' bus='ide'/><address type='drive' controller='0' bus='0' target='0' unit='0'/></disk>
    <disk device='cdrom'><target dev='hdc' bus='ide'/><address type='drive' controller='0' bus='1' target='0' unit='0'/></disk>
    <disk device='floppy'><target dev='fda' bus='fdc'/></disk><interface type='network'><source network='default'/><model type='rtl8139'/></interface>
    <controller type='ide' index='0'><address type='pci' domain='0x0000' bus='0x00' slot='0x01' function='0x1'/></controller><memballoon model='none'/>`;
  const machine = readLibvirt(
    libvirtDomain({
      machine: 'pc-i440fx-6.2',
      os: "<boot dev='network'/><boot dev='cdrom'/><boot dev='hd'/><boot dev='fd'/>",
      devices,
    }),
  );
  assert.deepEqual(
    [...machine.disks, ...machine.nics].map(({ id, bootOrder }) => [id, bootOrder]),
    [
      ['disk-hda', 3],
      ['disk-hdc', 2],
      ['disk-fda', undefined],
      ['nic-nic', 1],
    ],
  );
  assert.deepEqual(
    machine.disks.map(({ bus, media }) => `${bus} ${media}`),
    ['ide disk', 'ide cdrom', 'fdc floppy'],
  );
  assert.equal(machine.nics[0]?.model, 'rtl8139');
  assert.ok(!machine.rows.some(({ type }) => type === 'balloon'));
});

test('recognizes LUNs by their udev names', () => {
  const lun = (path: string) =>
    readLibvirt(
      libvirtDomain({
        devices: `<disk type='block' device='lun'><source dev='${path}'/><target dev='sda' bus='scsi'/></disk>`,
      }),
    ).disks[0];
  assert.deepEqual(lun('/dev/disk/by-id/wwn-0x6001405abc')?.lun, { guid: '0x6001405abc' });
  assert.deepEqual(lun('/dev/mapper/36001405abc')?.lun, { guid: '36001405abc' });
  assert.deepEqual(lun('/dev/disk/by-uuid/1234')?.lun, { uuid: '1234' });
  assert.equal(lun('/dev/sdq')?.media, 'disk');
});

const disk = (more: string) => `<disk device='disk'><source file='/a'/><target dev='vda' bus='virtio'/>${more}</disk>`;
const refused: Record<string, { xml: string; why: RegExp }> = {
  'another root element': { xml: '<network/>', why: /expected a domain/ },
  'entity declarations': { xml: `<!DOCTYPE d [<!ENTITY a "b">]>${libvirtDomain()}`, why: /DOCTYPE/ },
  'another architecture': {
    xml: libvirtDomain().replace("arch='x86_64'", "arch='aarch64'"),
    why: /"aarch64"; expected x86_64/,
  },
  'a machine that is neither q35 nor i440fx': {
    xml: libvirtDomain({ machine: 'microvm' }),
    why: /neither q35 nor i440fx/,
  },
  'CPUs that do not add up': {
    xml: libvirtDomain().replace("cores='2'", "cores='3'"),
    why: /4 CPUs, but the topology has 6/,
  },
  'an unreadable memory size': {
    xml: libvirtDomain().replace("unit='KiB'>4194304", "unit='constructor'>x"),
    why: /the memory size/,
  },
  'two devices with the same address': {
    xml: libvirtDomain({
      devices: disk("<address type='pci' bus='0x01' slot='0x00'/>") + disk("<address type='pci' bus='1' slot='0'/>"),
    }),
    why: /at the same address/,
  },
  'two interfaces with the same MAC address': {
    xml: libvirtDomain().replace('aa:bb:02', 'aa:bb:01'),
    why: /two interfaces have the MAC/,
  },
  'a repeated and an invalid boot order': {
    xml: libvirtDomain({ devices: disk("<boot order='1'/>") + disk("<boot order='1'/>") + disk("<boot order='x'/>") }),
    why: /two devices have the boot order 1|0\.5 is not a valid boot order/,
  },
  'two disks with the same file': {
    xml: libvirtDomain({ devices: disk('') + disk('') }),
    why: /two disks have the file "\/a"/,
  },
  'an unsupported disk format': {
    xml: libvirtDomain({ devices: "<disk device='disk'><driver type='vdi'/><target dev='vda'/></disk>" }),
    why: /"vdi" is neither/,
  },
  'an unknown kind of disk': {
    xml: libvirtDomain({ devices: "<disk device='constructor'/>" }),
    why: /there is no device "constructor"/,
  },
  'an invalid uuid': { xml: libvirtDomain().replace('7c6d3f1a', 'zzz'), why: /is not a uuid/ },
};

for (const [name, { xml, why }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    assert.throws(
      () => readLibvirt(xml),
      (error: unknown) => error instanceof FileFormatError && why.test(error.message),
    );
  });
}

test('reads back the identity of a written domain and the addresses of plugged devices', () => {
  fc.assert(
    fc.property(arbitraryMachine, (made) => {
      const machine = { ...made, chipset: 'i440fx' as const, machineType: 'pc-i440fx-7.2' };
      const read = readLibvirt(writeLibvirt(machine).xml);
      assert.deepEqual(
        [read.uuid, read.serial, read.cpu, read.memoryMib, read.firmware],
        [machine.uuid, machine.serial, { model: 'host-model', ...machine.cpu }, machine.memoryMib, machine.firmware],
      );
      const places = new Map(read.rows.map((row) => [row.id, row]));
      for (const { id, type, address, plugged } of machine.rows) {
        if (plugged === false) assert.equal(places.has(id), false, id);
        else if (address !== undefined && (type === 'disk' || type === 'interface')) {
          assert.equal(places.get(id)?.address?.['slot'], address['slot'], id);
          assert.equal(places.get(id)?.address?.['bus'], address['bus'], id);
        }
      }
    }),
    { numRuns: 40 },
  );
});

test('keeps the devices of a domain that is read and written', () => {
  const machine = readLibvirt(libvirtDomain());
  const { xml, notes } = writeLibvirt(machine);
  const again = readLibvirt(xml);
  assert.deepEqual(again.disks, machine.disks);
  assert.deepEqual(again.nics, machine.nics);
  const kept = (list: typeof machine.rows) => new Map(list.map(({ id, address }) => [id, address]));
  const [before, after] = [kept(machine.rows), kept(again.rows)];
  for (const [id, address] of before) {
    if (id !== 'hostdev0' && address !== undefined) assert.deepEqual(after.get(id), address, id);
  }
  assert.match(notes.join('\n'), /hostdev0 \(hostdev pci\) is not written/);
  assert.match(xml, /<alias name="ua-scsi0"\/>/);
  assert.doesNotMatch(xml, /ua-usb0/);
});

const slotsOf = (domain: string) =>
  Object.fromEntries(readLibvirt(domain).rows.map((row) => [row.id, formatAddress(row)]));

test("gives a domain without addresses libvirt's addresses and default devices", () => {
  const devices = `
    <disk device='disk'><source file='/a'/><target dev='vdb' bus='virtio'/></disk>
    <disk device='disk'><source file='/b'/><target dev='vda' bus='virtio'/></disk>
    <interface type='user'><model type='virtio'/></interface>
    <sound model='ich6'/>
    <video><model type='vga'/></video>`;
  assert.deepEqual(slotsOf(libvirtDomain({ machine: 'pc-i440fx-7.2', devices })), {
    'disk-vdb': '0000:00:06.0',
    'disk-vda': '0000:00:05.0',
    'nic-nic': '0000:00:03.0',
    sound0: '0000:00:04.0',
    video0: '0000:00:02.0',
    balloon0: '0000:00:07.0',
  });
  assert.deepEqual(slotsOf(libvirtDomain({ machine: 'pc-q35-7.2', devices: devices.replace('ich6', 'ich9') })), {
    'disk-vdb': '0000:04:00.0',
    'disk-vda': '0000:03:00.0',
    'nic-nic': '0000:01:00.0',
    sound0: '0000:00:1b.0',
    video0: '0000:00:01.0',
    usb0: '0000:02:00.0',
    balloon0: '0000:05:00.0',
  });
});

test('keeps the order of interfaces, regardless of their MAC addresses', () => {
  const nic = (mac: string) => `<interface type='user'><mac address='${mac}'/><model type='virtio'/></interface>`;
  const devices = nic('52:54:00:00:00:02') + nic('52:54:00:00:00:01');
  const { nics } = readLibvirt(libvirtDomain({ machine: 'pc-i440fx-7.2', devices }));
  assert.deepEqual(
    nics.map(({ mac }) => mac),
    ['52:54:00:00:00:02', '52:54:00:00:00:01'],
  );
});

test("does not keep an address of libvirt's that a device cannot have, and notes that", () => {
  const devices = `<sound model='ich6'/><video><model type='vga'/></video>`;
  const { rows, notes } = readLibvirt(libvirtDomain({ machine: 'pc-q35-7.2', devices }));
  assert.equal(rows.find(({ id }) => id === 'sound0')?.address, undefined);
  assert.match(notes.join('\n'), /sound0: libvirt has it at 0000:0\d:01\.0, behind a PCI bridge/);
});

test('writes explicitly that a q35 machine has no USB, because libvirt would add a controller', () => {
  const machine = readLibvirt(
    libvirtDomain({ devices: "<memballoon model='none'/><controller type='usb' model='none'/>" }),
  );
  assert.deepEqual(machine.rows, []);
  const { xml } = writeLibvirt(machine);
  assert.match(xml, /<controller type="usb" index="0" model="none"\/>/);
  assert.deepEqual(readLibvirt(xml).rows, []);
});
