import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { IdentityStatus } from '#api/virtual-machine-identity/kind.ts';
import { readKnownDevices, rowsFor, type KnownDevices } from '#api/devices/known-devices.ts';

const address = { type: 'pci', domain: '0x0000', bus: '0x01', slot: '0x00', function: '0x0' };
const row = (id: string, overrides: Partial<LearnedDevice> = {}): LearnedDevice => ({
  id,
  type: 'interface',
  device: 'virtio',
  address,
  ...overrides,
});
const port = row('rp0', { type: 'controller', device: 'pcie-root-port' });
const without = ({ address: _address, ...rest }: LearnedDevice) => rest;

const cases: Record<string, { known: KnownDevices; want: LearnedDevice[] }> = {
  'keeps rows of the same chipset unchanged': {
    known: { machine: 'pc-q35-6.2', devices: [port, row('nic-a')] },
    want: [port, row('nic-a')],
  },
  'keeps rows of an unknown machine type unchanged': {
    known: { devices: [row('nic-a')] },
    want: [row('nic-a')],
  },
  'drops addresses and root ports of another chipset': {
    known: { machine: 'pc-i440fx-7.2', devices: [port, row('nic-a')] },
    want: [without(row('nic-a'))],
  },
  'drops an empty address': { known: { devices: [row('nic-a', { address: {} })] }, want: [without(row('nic-a'))] },
  'keeps the first of two rows with the same id': {
    known: { devices: [row('nic-a'), row('nic-a', { device: 'e1000e' })] },
    want: [row('nic-a')],
  },
  'gives our id to devices of which a guest has at most one': {
    known: {
      devices: [
        row('a', { type: 'controller', device: 'virtio-scsi' }),
        row('b', { type: 'controller', device: 'virtio-scsi' }),
        row('c', { type: 'balloon', device: 'memballoon' }),
        row('d', { type: 'rng', device: 'virtio' }),
      ],
    },
    want: [
      row('scsi0', { type: 'controller', device: 'virtio-scsi' }),
      row('b', { type: 'controller', device: 'virtio-scsi' }),
      row('balloon0', { type: 'balloon', device: 'memballoon' }),
      row('rng0', { type: 'rng', device: 'virtio' }),
    ],
  },
  "recognizes libvirt's name of the SCSI controller": {
    known: { devices: [row('x', { type: 'controller', device: 'scsi', specParams: { model: 'virtio-scsi' } })] },
    want: [row('scsi0', { type: 'controller', device: 'scsi', specParams: { model: 'virtio-scsi' } })],
  },
  'keeps our id if a row already has it': {
    known: { devices: [row('x', { type: 'rng' }), row('rng0', { type: 'rng' })] },
    want: [row('x', { type: 'rng' }), row('rng0', { type: 'rng' })],
  },
};
for (const [name, { known, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(rowsFor(known, 'q35'), want));
}

const records: Record<string, { status: IdentityStatus; want: KnownDevices }> = {
  'returns nothing for a record without devices': {
    status: { machine: { type: 'pc-q35-7.2' } },
    want: { devices: [] },
  },
  'marks devices that were never learned as imported': {
    status: { devices: [row('nic-a')] },
    want: { machine: undefined, devices: [row('nic-a')], imported: true },
  },
  'reserves the place of a device that is gone': {
    status: { devices: [row('nic-a')], freed: [row('nic-b', { name: 'b' })], learnedAt: 'now' },
    want: { machine: undefined, devices: [row('nic-a'), { ...row('nic-b'), gone: true }], imported: false },
  },
  'reserves a freed place under another id if its device is still listed': {
    status: { devices: [without(row('nic-a'))], freed: [row('nic-a')], learnedAt: 'now' },
    want: {
      machine: undefined,
      devices: [without(row('nic-a')), { ...row('freed-nic-a'), gone: true }],
      imported: false,
    },
  },
};

for (const [sentence, { status, want }] of Object.entries(records)) {
  test(sentence, () => assert.deepEqual(readKnownDevices(status), want));
}
