import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineDomain } from '#node/definition/define-domain.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

test('converts every device with its kind and address', () => {
  const vmi = aVmi(
    { devices: { disks: [{ name: 'root', disk: { bus: 'scsi' } }], rng: {}, tpm: {} } },
    { volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] },
  );
  const learned = toLearnedDevices(defineDomain(anInput(vmi)).definition!);
  const pci = (bus: string, slot: string) => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
  const drive = { type: 'drive', controller: '0', bus: '0', target: '0', unit: '0' };
  assert.deepEqual(learned[0], {
    id: 'rp0',
    type: 'controller',
    device: 'pcie-root-port',
    managed: false,
    address: pci('0x00', '0x02'),
  });
  assert.deepEqual(learned.slice(8), [
    { id: 'scsi0', type: 'controller', device: 'virtio-scsi', managed: false, address: pci('0x00', '0x06') },
    {
      id: 'nic-default',
      type: 'interface',
      device: 'virtio',
      name: 'default',
      managed: true,
      address: pci('0x01', '0x00'),
    },
    {
      id: 'disk-root',
      type: 'disk',
      device: 'disk',
      name: 'root',
      bootOrder: 1,
      managed: true,
      specParams: { bus: 'scsi' },
      address: drive,
    },
    { id: 'tpm0', type: 'tpm', device: 'crb', managed: true },
    { id: 'rng0', type: 'rng', device: 'virtio', managed: true, address: pci('0x00', '0x09') },
    { id: 'balloon0', type: 'balloon', device: 'memballoon', managed: true, address: pci('0x00', '0x08') },
    { id: 'serial0', type: 'console', device: 'serial', managed: true },
    { id: 'display0', type: 'video', device: 'vga', managed: true, address: pci('0x00', '0x01') },
    {
      id: 'virtio-serial0',
      type: 'controller',
      device: 'virtio-serial',
      managed: false,
      address: pci('0x00', '0x07'),
    },
    {
      id: 'agent0',
      type: 'channel',
      device: 'unix',
      managed: false,
      specParams: { name: 'org.qemu.guest_agent.0' },
      address: { type: 'virtio-serial', controller: '0', bus: '0', port: '1' },
    },
  ]);
});

test('marks read-only disks, and returns other hardware as it was recorded', () => {
  const sound = { id: 'sound0', type: 'sound', device: 'ich6', managed: false, specParams: { codec: 'none' } };
  const vmi = aVmi(
    {
      machine: { type: 'pc' },
      devices: {
        disks: [
          { name: 'cd', cdrom: {} },
          { name: 'fd', floppy: {} },
        ],
      },
    },
    { volumes: ['cd', 'fd'].map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })) },
  );
  const known = { devices: [sound] };
  const learned = new Map(
    toLearnedDevices(defineDomain(anInput(vmi, { known })).definition!).map((device) => [device.id, device]),
  );
  const drive = { type: 'drive', controller: '0', target: '0', unit: '0' };
  assert.deepEqual(learned.get('disk-cd'), {
    id: 'disk-cd',
    type: 'disk',
    device: 'cdrom',
    name: 'cd',
    bootOrder: 1,
    managed: true,
    readonly: true,
    specParams: { bus: 'ide' },
    address: { ...drive, bus: '1' },
  });
  assert.deepEqual(learned.get('disk-fd'), {
    id: 'disk-fd',
    type: 'disk',
    device: 'floppy',
    name: 'fd',
    managed: true,
    specParams: { bus: 'fdc' },
    address: { ...drive, bus: '0' },
  });
  const { address, ...rest } = learned.get('sound0')!;
  assert.deepEqual(rest, sound);
  assert.equal(address?.['type'], 'pci');
});
