import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildBusTree, buildDeviceRows, summarizeIdentity, renderTree } from '#api/identity/identity-table.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';

const pci = (bus: number, slot: number, fn = 0) => ({
  type: 'pci',
  domain: '0x0000',
  bus: `0x${bus.toString(16).padStart(2, '0')}`,
  slot: `0x${slot.toString(16).padStart(2, '0')}`,
  function: `0x${fn}`,
});
const drive = (unit: number, bus = 0) => ({
  type: 'drive',
  controller: '0',
  bus: String(bus),
  target: '0',
  unit: String(unit),
});
const port = (index: number): LearnedDevice => ({
  id: `rp${index}`,
  type: 'controller',
  device: 'pcie-root-port',
  address: pci(0, 2, index),
});
const disk = (name: string, bus: string, address: LearnedDevice['address'], more: object = {}): LearnedDevice => ({
  id: `disk-${name}`,
  type: 'disk',
  device: 'disk',
  managed: true,
  specParams: { bus },
  ...(address && { address }),
  ...more,
});
const nic: LearnedDevice = {
  id: 'nic-default',
  type: 'interface',
  device: 'virtio',
  managed: true,
  address: pci(1, 0),
};
const onBus = (type: string, port: string) => ({
  type,
  bus: '0',
  port,
  ...(type === 'usb' ? {} : { controller: '0' }),
});
const scsi0: LearnedDevice = { id: 'scsi0', type: 'controller', device: 'virtio-scsi', address: pci(0, 6) };

const trees: Record<string, { machine: string; devices: LearnedDevice[]; want: string[] }> = {
  'root ports with and without devices, SATA and SCSI': {
    machine: 'pc-q35-7.2',
    devices: [
      { id: 'tpm0', type: 'tpm', device: 'crb', managed: true },
      disk('root', 'virtio', pci(2, 0)),
      disk('cd', 'sata', drive(0), { device: 'cdrom' }),
      disk('b', 'scsi', drive(10)),
      disk('a', 'scsi', drive(2), { plugged: false }),
      port(1),
      port(0),
      scsi0,
      port(2),
      nic,
    ],
    want: [
      'pcie.0',
      '├─ 00:02.0 rp0 (controller, pcie-root-port)',
      '│  └─ 01:00.0 nic-default (interface, virtio)',
      '├─ 00:02.1 rp1 (controller, pcie-root-port)',
      '│  └─ 02:00.0 disk-root (disk)',
      '├─ 00:02.2 rp2 (controller, pcie-root-port)',
      '└─ 00:06.0 scsi0 (controller, virtio-scsi)',
      '   ├─ 0:0:0:2 disk-a (disk, unplugged)',
      '   └─ 0:0:0:10 disk-b (disk)',
      'SATA',
      '└─ 0:0:0:0 disk-cd (disk, cdrom)',
      'without an address',
      '└─ tpm0 (tpm, crb)',
    ],
  },
  'i440fx with IDE and a floppy': {
    machine: 'pc-i440fx-7.2',
    devices: [
      disk('c', 'ide', drive(1, 0)),
      disk('cd', 'ide', drive(0, 1), { device: 'cdrom' }),
      disk('f', 'fdc', drive(0), { device: 'floppy' }),
      { ...nic, address: pci(0, 3) },
    ],
    want: [
      'pci.0',
      '└─ 00:03.0 nic-default (interface, virtio)',
      'IDE',
      '├─ 0:0:0:1 disk-c (disk)',
      '└─ 0:1:0:0 disk-cd (disk, cdrom)',
      'floppy',
      '└─ 0:0:0:0 disk-f (disk, floppy)',
    ],
  },
  'imported ports, and a bus whose port is unknown': {
    machine: 'pc-q35-rhel8.6.0',
    devices: [
      { id: 'port0', type: 'controller', device: 'pcie-root-port', address: pci(0, 2), specParams: { index: '1' } },
      nic,
      disk('far', 'virtio', pci(9, 0)),
    ],
    want: [
      'pcie.0',
      '├─ 00:02.0 port0 (controller, pcie-root-port)',
      '│  └─ 01:00.0 nic-default (interface, virtio)',
      '└─ bus 9',
      '   └─ 09:00.0 disk-far (disk)',
    ],
  },
  'SCSI disks whose controller is unknown': {
    machine: '',
    devices: [
      disk('a', 'scsi', drive(0)),
      { id: 'x', type: 'odd', device: 'thing', address: { type: 'isa', irq: '4' } },
    ],
    want: ['SCSI', '└─ 0:0:0:0 disk-a (disk)', 'on other buses', '└─ isa irq=4 x (odd, thing)'],
  },
  'USB and virtio-serial below their controllers': {
    machine: 'pc-q35-7.2',
    devices: [
      { id: 'agent0', type: 'channel', device: 'unix', address: onBus('virtio-serial', '1') },
      { id: 'stick', type: 'disk', device: 'disk', address: onBus('usb', '10') },
      { id: 'pen', type: 'input', device: 'tablet', address: onBus('usb', '2') },
      { id: 'xhci0', type: 'controller', device: 'usb', address: pci(0, 10) },
      { id: 'virtio-serial0', type: 'controller', device: 'virtio-serial', address: pci(0, 7) },
    ],
    want: [
      'pcie.0',
      '├─ 00:07.0 virtio-serial0 (controller, virtio-serial)',
      '│  └─ 0:0:1 agent0 (channel, unix)',
      '└─ 00:0a.0 xhci0 (controller, usb)',
      '   ├─ 0:2 pen (input, tablet)',
      '   └─ 0:10 stick (disk)',
    ],
  },
  'USB without a controller': {
    machine: '',
    devices: [{ id: 'pen', type: 'input', device: 'tablet', address: onBus('usb', '2') }],
    want: ['on other buses', '└─ usb 0:2 pen (input, tablet)'],
  },
  'no devices': { machine: '', devices: [], want: [] },
};
for (const [title, { machine, devices, want }] of Object.entries(trees)) {
  test(`tree: ${title}`, () => {
    assert.deepEqual(renderTree(buildBusTree({ machine: { type: machine }, devices })), want);
  });
}

test('the table is sorted by address and leaves out root ports', () => {
  const rows = buildDeviceRows([
    { id: 'tpm0', type: 'tpm', device: 'crb', managed: true },
    disk('b', 'scsi', drive(10), { bootOrder: 1 }),
    disk('a', 'scsi', drive(2), { plugged: false }),
    port(0),
    scsi0,
    nic,
  ]);
  assert.deepEqual(rows, [
    ['scsi0', 'controller/virtio-scsi', '0000:00:06.0', '<none>', 'yes', 'no'],
    ['nic-default', 'interface/virtio', '0000:01:00.0', '<none>', 'yes', 'yes'],
    ['disk-a', 'disk/disk', 'scsi 0:0:0:2', '<none>', 'no', 'yes'],
    ['disk-b', 'disk/disk', 'scsi 0:0:0:10', '1', 'yes', 'yes'],
    ['tpm0', 'tpm/crb', '<none>', '<none>', 'yes', 'yes'],
  ]);
});

const template = { devices: { interfaces: [{ name: 'a' }, { name: 'b', macAddress: '02:00:00:00:00:0B' }] } };
const vm = { spec: { template: { spec: { domain: template } } } } as Pick<VirtualMachine, 'spec'>;
const aRecord = (status?: VirtualMachineIdentity['status']): VirtualMachineIdentity => ({
  apiVersion: 'identity.selfsame.io/v1',
  kind: 'VirtualMachineIdentity',
  metadata: { name: 'db', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { firmware: { uuid: 'u' }, interfaces: [{ name: 'a', macAddress: '02:00:00:00:00:0a' }] },
  ...(status && { status }),
});

test('the summary has MACs from record and template, and the time of the last change', () => {
  const history = [
    { at: '2026-01-02T00:00:00Z', what: 'first seen', cause: 'a start' },
    { at: '2026-01-03T00:00:00Z', what: 'nic-a moved', cause: 'a start' },
  ];
  assert.deepEqual(summarizeIdentity(vm, aRecord({ machine: { type: 'pc-q35-7.2' }, history })), {
    uuid: 'u',
    serial: '',
    machine: 'pc-q35-7.2',
    macs: [
      { name: 'a', mac: '02:00:00:00:00:0a' },
      { name: 'b', mac: '02:00:00:00:00:0b' },
    ],
    unchangedSince: '2026-01-03T00:00:00Z',
    lastChange: 'nic-a moved',
  });
});

test('the summary takes MACs from the record, not from the current template', () => {
  const record = aRecord();
  record.spec.interfaces = [{ name: 'b', macAddress: '02:00:00:00:00:0c', fromTemplate: true }];
  assert.deepEqual(summarizeIdentity(vm, record).macs[1], { name: 'b', mac: '02:00:00:00:00:0c' });
});

test('the summary of a record without history has no time of the last change', () => {
  const { unchangedSince, lastChange } = summarizeIdentity(vm, aRecord());
  assert.deepEqual([unchangedSince, lastChange], ['', '']);
});
