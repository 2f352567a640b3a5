import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Devices } from '#api/domain/devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { defineVideo } from '#node/definition/devices/simple-devices.ts';

const nic: LearnedDevice = { id: 'nic-a', type: 'interface', device: 'virtio' };
const card: LearnedDevice = { id: 'display0', type: 'video', device: 'bochs', managed: true };
const found: LearnedDevice = { id: 'video0', type: 'video', device: 'qxl', managed: false };

const cases: Record<string, { devices?: Devices; rows?: LearnedDevice[]; want: string | undefined }> = {
  'adds a VGA card on the first start': { want: 'vga' },
  'does not add a card to a guest that has run without one': { rows: [nic], want: undefined },
  'adds a card to a guest that has run without one if its spec asks for it': {
    devices: { autoattachGraphicsDevice: true },
    rows: [nic],
    want: 'vga',
  },
  'adds a card if the spec names its type': { devices: { video: { type: 'virtio' } }, rows: [nic], want: 'virtio' },
  'keeps the recorded model': { rows: [nic, card], want: 'bochs' },
  'prefers the spec to the record': { devices: { video: { type: 'vga' } }, rows: [nic, card], want: 'vga' },
  'adds no card if the spec disables it': {
    devices: { autoattachGraphicsDevice: false },
    rows: [nic, card],
    want: undefined,
  },
  'adds no card for the type none': { devices: { video: { type: 'none' } }, want: undefined },
  'adds no card if an imported one is recorded': { rows: [found], want: undefined },
};
for (const [name, { devices = {}, rows = [], want }] of Object.entries(cases)) {
  test(name, () => {
    assert.equal(defineVideo(devices, rows)[0]?.device.model, want);
  });
}
