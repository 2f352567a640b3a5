import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { IdentityStatus } from '#api/virtual-machine-identity/kind.ts';
import { knownFrom, rowsFor, type KnownDevices } from '#node/definition/addresses/known-devices.ts';

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
  'rows of the same chipset stay as they are': {
    known: { machine: 'pc-q35-6.2', devices: [port, row('nic-a')] },
    want: [port, row('nic-a')],
  },
  'rows of a machine that nobody knows stay as they are': {
    known: { devices: [row('nic-a')] },
    want: [row('nic-a')],
  },
  'rows of another chipset lose their addresses, and its ports are gone': {
    known: { machine: 'pc-i440fx-7.2', devices: [port, row('nic-a')] },
    want: [without(row('nic-a'))],
  },
  'an empty address is none': { known: { devices: [row('nic-a', { address: {} })] }, want: [without(row('nic-a'))] },
  'of two rows of one id the first counts': {
    known: { devices: [row('nic-a'), row('nic-a', { device: 'e1000e' })] },
    want: [row('nic-a')],
  },
  'what a guest has once gets our id': {
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
  "libvirt's name of the SCSI controller is known, too": {
    known: { devices: [row('x', { type: 'controller', device: 'scsi', specParams: { model: 'virtio-scsi' } })] },
    want: [row('scsi0', { type: 'controller', device: 'scsi', specParams: { model: 'virtio-scsi' } })],
  },
  'a row that has our id already keeps it': {
    known: { devices: [row('x', { type: 'rng' }), row('rng0', { type: 'rng' })] },
    want: [row('x', { type: 'rng' }), row('rng0', { type: 'rng' })],
  },
};
for (const [name, { known, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(rowsFor(known, 'q35'), want));
}

const records: Record<string, { status: IdentityStatus; want: KnownDevices }> = {
  'a record without devices knows nothing': { status: { machine: { type: 'pc-q35-7.2' } }, want: { devices: [] } },
  'what was never learned here was imported': {
    status: { devices: [row('nic-a')] },
    want: { machine: undefined, devices: [row('nic-a')], imported: true },
  },
  'the place of a device that is gone is a row that nobody wants': {
    status: { devices: [row('nic-a')], freed: [row('nic-b', { name: 'b' })], learnedAt: 'now' },
    want: { machine: undefined, devices: [row('nic-a'), row('nic-b')], imported: false },
  },
  'the place that a listed device has given up is not its own any more': {
    status: { devices: [without(row('nic-a'))], freed: [row('nic-a')], learnedAt: 'now' },
    want: { machine: undefined, devices: [without(row('nic-a')), row('freed-nic-a')], imported: false },
  },
};

for (const [sentence, { status, want }] of Object.entries(records)) {
  test(sentence, () => assert.deepEqual(knownFrom(status), want));
}
