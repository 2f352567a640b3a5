import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Devices } from '#api/domain/devices.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { defineVideo } from '#node/definition/devices/video.ts';

const nic: LearnedDevice = { id: 'nic-a', type: 'interface', device: 'virtio' };
const card: LearnedDevice = { id: 'display0', type: 'video', device: 'bochs', managed: true };
const found: LearnedDevice = { id: 'video0', type: 'video', device: 'qxl', managed: false };

const cases: Record<string, { devices?: Devices; rows?: LearnedDevice[]; want: string | undefined }> = {
  'a guest that starts for the first time has a VGA': { want: 'vga' },
  'one that has run without a card does not get one unasked': { rows: [nic], want: undefined },
  'one that has run without a card gets one where its spec asks': {
    devices: { autoattachGraphicsDevice: true },
    rows: [nic],
    want: 'vga',
  },
  'a type is a wish, too': { devices: { video: { type: 'virtio' } }, rows: [nic], want: 'virtio' },
  'one that had a card keeps the same': { rows: [nic, card], want: 'bochs' },
  'the spec stands above the record': { devices: { video: { type: 'vga' } }, rows: [nic, card], want: 'vga' },
  'a card can be refused': { devices: { autoattachGraphicsDevice: false }, rows: [nic, card], want: undefined },
  'none is a refusal': { devices: { video: { type: 'none' } }, want: undefined },
  'a card that came with the machine is enough': { rows: [found], want: undefined },
};
for (const [name, { devices = {}, rows = [], want }] of Object.entries(cases)) {
  test(name, () => {
    assert.equal(defineVideo(devices, rows)[0]?.device.model, want);
  });
}
