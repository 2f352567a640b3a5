import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkBootString, bootOrders, bootString, type BootDevice } from '#node/host-api/sent/boot-string.ts';

const bootDisk: BootDevice = { type: 'disk', device: 'disk', isBootDisk: true };
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
  'orders network cards by name, and boots only from managed devices and marked disks': {
    boot: 'dnc',
    devices: [bootDisk, nic('nic2'), cd, nic('nic1'), plainDisk, unmanagedNic],
    want: [4, 3, 1, 2, 0, 0],
  },
  'boots from a single disk even if it is not marked': {
    boot: 'cdn',
    devices: [plainDisk, cd, nic('a')],
    want: [1, 2, 3],
  },
  'boots from the first of several unmarked disks': {
    boot: 'c',
    devices: [plainDisk, { ...plainDisk }],
    want: [1, 0],
  },
  'does not boot from a group that is not in the string': {
    boot: 'n',
    devices: [bootDisk, cd, nic('a')],
    want: [0, 0, 1],
  },
  'does not boot from an unplugged device': {
    boot: 'nc',
    devices: [bootDisk, nic('a', { plugged: false })],
    want: [1, 0],
    back: 'c',
  },
  'skips letters without devices': { boot: 'dnc', devices: [bootDisk], want: [1], back: 'c' },
  'maps the letter a to the floppy': { boot: 'ac', devices: [bootDisk, floppy], want: [2, 1] },
};

for (const [name, { boot, devices, want, back = boot }] of Object.entries(cases)) {
  test(name, () => {
    const orders = bootOrders(boot, devices);
    assert.deepEqual(orders, want);
    const ordered = devices.map((device, i) => ({ ...device, bootOrder: orders[i] ?? 0 }));
    assert.equal(bootString(ordered), back);
  });
}

test('refuses a boot string with unknown or repeated letters', () => {
  for (const boot of ['cdx', 'cc', 'C']) assert.match(checkBootString(boot) ?? '', /^boot: .*; expected c \(disk\)/);
  for (const boot of ['', 'cdn', 'n', 'a']) assert.equal(checkBootString(boot), undefined);
});
