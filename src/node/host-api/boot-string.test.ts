import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootFault, bootOrders, bootString, type BootDevice } from '#node/host-api/boot-string.ts';

const bootDisk: BootDevice = { type: 'disk', device: 'disk', boots: true };
const plainDisk: BootDevice = { type: 'disk', device: 'disk' };
const cd: BootDevice = { type: 'disk', device: 'cdrom' };
const floppy: BootDevice = { type: 'disk', device: 'floppy' };
const nic = (name: string, more: Partial<BootDevice> = {}): BootDevice => ({
  type: 'interface',
  device: 'bridge',
  name,
  ...more,
});
const unmanagedNic = nic('nic0', { managed: false });

const cases: Record<string, { boot: string; devices: BootDevice[]; want: number[]; back?: string }> = {
  'network cards go by name, and only what is managed and marked boots': {
    boot: 'dnc',
    devices: [bootDisk, nic('nic2'), cd, nic('nic1'), plainDisk, unmanagedNic],
    want: [4, 3, 1, 2, 0, 0],
  },
  'one disk boots whether it is marked or not': { boot: 'cdn', devices: [plainDisk, cd, nic('a')], want: [1, 2, 3] },
  'of several disks that are not marked, the first': {
    boot: 'c',
    devices: [plainDisk, { ...plainDisk }],
    want: [1, 0],
  },
  'what is not in the string does not boot': { boot: 'n', devices: [bootDisk, cd, nic('a')], want: [0, 0, 1] },
  'what is unplugged does not boot': {
    boot: 'nc',
    devices: [bootDisk, nic('a', { plugged: false })],
    want: [1, 0],
    back: 'c',
  },
  'letters without devices are passed over': { boot: 'dnc', devices: [bootDisk], want: [1], back: 'c' },
  'a is the floppy': { boot: 'ac', devices: [bootDisk, floppy], want: [2, 1] },
};

for (const [name, { boot, devices, want, back = boot }] of Object.entries(cases)) {
  test(name, () => {
    const orders = bootOrders(boot, devices);
    assert.deepEqual(orders, want);
    const ordered = devices.map((device, i) => ({ ...device, bootOrder: orders[i] ?? 0 }));
    assert.equal(bootString(ordered), back);
  });
}

test('a string with other letters, or with one of them twice, is none', () => {
  for (const boot of ['cdx', 'cc', 'C']) assert.match(bootFault(boot) ?? '', /is no boot order; expected/);
  for (const boot of ['', 'cdn', 'n', 'a']) assert.equal(bootFault(boot), undefined);
});
