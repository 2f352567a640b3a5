import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deviceHash } from '#api/devices/device-hash.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';

const nic: LearnedDevice = {
  id: 'nic-default',
  type: 'interface',
  device: 'virtio',
  name: 'default',
  managed: true,
  address: { type: 'pci', domain: '0x0000', bus: '0x01', slot: '0x00', function: '0x0' },
};
const disk: LearnedDevice = {
  id: 'disk-root',
  type: 'disk',
  device: 'disk',
  name: 'root',
  managed: true,
  bootOrder: 1,
  address: { type: 'pci', domain: '0x0000', bus: '0x02', slot: '0x00', function: '0x0' },
  specParams: { bus: 'virtio' },
};

const same: Record<string, readonly LearnedDevice[]> = {
  'in another order': [disk, nic],
  'with the keys of an address in another order': [{ ...nic, address: reversed(nic.address!) }, disk],
  'with keys in another order': [reversed(nic), reversed(disk)],
  'with explicit default values': [{ ...nic, plugged: true, readonly: false }, disk],
  'with empty and undefined values': [
    { ...nic, specParams: {} },
    { ...disk, readonly: undefined },
  ],
};

for (const [what, devices] of Object.entries(same)) {
  test(`the same devices ${what} have the same hash`, () => {
    assert.equal(deviceHash(devices), deviceHash([nic, disk]));
  });
}

const others: Record<string, readonly LearnedDevice[]> = {
  'at another address': [{ ...nic, address: { ...nic.address, bus: '0x03' } }, disk],
  'with their addresses exchanged': [
    { ...nic, address: disk.address! },
    { ...disk, address: nic.address! },
  ],
  'without an address': [{ ...nic, address: undefined }, disk],
  unplugged: [{ ...nic, plugged: false }, disk],
  'read-only': [nic, { ...disk, readonly: true }],
  'with another boot order': [nic, { ...disk, bootOrder: 2 }],
  'with other parameters': [nic, { ...disk, specParams: { bus: 'scsi' } }],
  'fewer of them': [nic],
  'one of them twice': [nic, disk, disk],
  none: [],
};

for (const [what, devices] of Object.entries(others)) {
  test(`other devices have another hash: ${what}`, () => assert.notEqual(deviceHash(devices), deviceHash([nic, disk])));
}

test('the hash is the same in every process and version', () => {
  const expected = 'b86e82b99f8bfb0a37e12c81530e3b77d8a8fefdd7129657bea623f05e26b34c';
  assert.equal(deviceHash([nic, disk]), expected);
});

test('devices with different ids and types have different hashes', () => {
  const text = fc.string({ unit: 'binary', maxLength: 12 });
  fc.assert(
    fc.property(text, text, (left, right) => {
      const hashes = [
        deviceHash([{ id: left, type: right, device: 'x' }]),
        deviceHash([{ id: `${left}${right}`, type: '', device: 'x' }]),
      ];
      assert.ok(hashes[0] !== hashes[1] || right === '');
    }),
  );
});

function reversed<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).reverse()) as T;
}
