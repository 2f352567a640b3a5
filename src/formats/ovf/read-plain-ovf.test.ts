import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAddress } from '#api/devices/device-address.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { PLAIN_OVF } from '#formats/testing/plain-ovf.ts';

test('reads CPUs, disks with their controllers, interfaces and firmware of a standard OVF', () => {
  const machine = readOvf(PLAIN_OVF);
  assert.deepEqual(
    {
      name: machine.name,
      uuid: machine.uuid,
      chipset: machine.chipset,
      firmware: machine.firmware,
      memoryMib: machine.memoryMib,
    },
    { name: 'mail', uuid: undefined, chipset: undefined, firmware: 'efi', memoryMib: 4096 },
  );
  assert.deepEqual(machine.cpu, { sockets: 2, cores: 2, threads: 1 });
  assert.deepEqual(machine.source, { format: 'ovf' });
  assert.deepEqual(
    machine.disks.map(({ name, media, bus, file, sizeBytes, format, bootOrder }) => [
      name,
      media,
      bus,
      file,
      sizeBytes,
      format,
      bootOrder,
    ]),
    [
      ['cdrom', 'cdrom', 'sata', 'tools.iso', 4_194_304, 'raw', undefined],
      ['hard-disk-1', 'disk', 'sata', 'mail-disk1.vmdk', 16 * 1024 ** 3, 'vmdk', 1],
      ['hard-disk-2', 'disk', 'sata', undefined, 1_048_576, 'raw', undefined],
    ],
  );
  assert.deepEqual(
    machine.nics.map(({ name, model, network }) => [name, model, network]),
    [
      ['network-adapter-1', 'e1000e', 'VM Network'],
      ['network-adapter-2', 'e1000e', 'VM Network'],
    ],
  );
  const notes = machine.notes.join('\n');
  for (const note of [
    /"Hard disk 1": the bus "lsilogic".*sata/,
    /"CD": the bus "IDE".*sata/,
    /"VmxNet3".*e1000e/,
    /"sound" \(ResourceType 35\)/,
    /"Floppy" is left out/,
    /EulaSection/,
  ]) {
    assert.match(notes, note);
  }
});

test('puts disks on scsi if more than six would be on sata', () => {
  const ids = Array.from({ length: 8 }, (_, i) => `d${i}`);
  const disks = ids.map((id) => `<Disk ovf:diskId="${id}" ovf:capacity="1048576"/>`).join('');
  const items = ids
    .map(
      (id) =>
        `<Item><rasd:HostResource>ovf:/disk/${id}</rasd:HostResource><rasd:InstanceID>x${id}</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>`,
    )
    .join('');
  const machine = readOvf(
    PLAIN_OVF.replace('</DiskSection>', `${disks}</DiskSection>`).replace('<vmw:Config', `${items}<vmw:Config`),
  );
  assert.equal(machine.disks.filter(({ bus }) => bus === 'sata').length, 7, 'one of them was sata from the start');
  assert.equal(machine.disks.filter(({ bus }) => bus === 'scsi').length, 4);
});

test('reads an OVA of oVirt, which has the standard form with the devices of oVirt', () => {
  const id = '4f1c0f4e-0a53-4f5e-9a53-1d7c5a6ad101';
  const block =
    '<Type>disk</Type><Device>disk</Device><rasd:Address>{type=pci, slot=0x00, bus=0x03, domain=0x0000, function=0x0}</rasd:Address><BootOrder>1</BootOrder>';
  const ovf = `<ovf:Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
    xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:ovirt="http://www.ovirt.org/ovf">
    <References><File ovf:href="i1" ovf:id="i1" ovf:size="200"/></References>
    <DiskSection><Disk ovf:diskId="d1" ovf:capacity="2" ovf:capacityAllocationUnits="byte * 2^30" ovf:parentRef="" ovf:fileRef="i1" ovf:volume-format="COW" ovf:disk-interface="VirtIO" ovf:disk-alias="Root"/></DiskSection>
    <VirtualSystem ovf:id="${id}"><Name>ova</Name><default_boot_sequence>0</default_boot_sequence><ClusterCompatibilityVersion>4.4</ClusterCompatibilityVersion><BiosType>1</BiosType>
    <OperatingSystemSection ovf:id="80" ovirt:id="24" ovf:required="false"><Info>x</Info></OperatingSystemSection>
    <VirtualHardwareSection>
    <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
    <Item><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>512</rasd:VirtualQuantity></Item>
    <Item><rasd:InstanceID>d1</rasd:InstanceID><rasd:ResourceType>17</rasd:ResourceType><rasd:HostResource>ovf:/disk/d1</rasd:HostResource>${block}</Item>
    <Item><rasd:InstanceID>m</rasd:InstanceID><rasd:ResourceType>32768</rasd:ResourceType><Type>video</Type><Device>vga</Device></Item>
    </VirtualHardwareSection></VirtualSystem></ovf:Envelope>`;
  const machine = readOvf(ovf);
  assert.deepEqual(
    [machine.uuid, machine.chipset, machine.source],
    [id, 'q35', { format: 'ovf', product: 'oVirt', version: '4.4' }],
  );
  assert.deepEqual(machine.disks[0], {
    id: 'disk-root',
    name: 'root',
    media: 'disk',
    bus: 'virtio',
    file: 'i1',
    sizeBytes: 2 * 1024 ** 3,
    format: 'qcow2',
    bootOrder: 1,
    readonly: false,
    plugged: true,
    optional: false,
  });
  assert.deepEqual(
    machine.rows.map((row) => [row.id, formatAddress(row)]),
    [
      ['disk-root', '0000:03:00.0'],
      ['video0', '0000:00:01.0'],
    ],
  );
});
