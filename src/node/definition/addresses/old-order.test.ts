import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oldOrder, type OldDevice } from '#node/definition/addresses/old-order.ts';

const device = (name: string, type: string, kind = type, bootOrder?: number) => ({
  name,
  type,
  device: kind,
  ...(bootOrder !== undefined && { bootOrder }),
});
const namesOf = (devices: readonly OldDevice[]) => oldOrder(devices).map(({ name }) => name);

test('video, CD, floppy, disks, interfaces, sound, and the rest as it comes', () => {
  const devices = [
    device('balloon', 'balloon'),
    device('nic', 'interface', 'virtio'),
    device('usb', 'controller', 'usb'),
    device('sound', 'sound', 'ich6'),
    device('disk', 'disk'),
    device('floppy', 'disk', 'floppy'),
    device('cd', 'disk', 'cdrom'),
    device('video', 'video', 'qxl'),
  ];
  assert.deepEqual(namesOf(devices), ['video', 'cd', 'floppy', 'disk', 'nic', 'sound', 'balloon', 'usb']);
});

test('the disk that boots is the first, the others go by name as people count', () => {
  const disks = [
    device('disk10', 'disk'),
    device('disk2', 'disk', 'disk', 4),
    device('disk9', 'disk', 'disk', 2),
    device('disk1', 'disk', 'lun'),
  ];
  assert.deepEqual(namesOf(disks), ['disk9', 'disk1', 'disk2', 'disk10']);
});

test('interfaces stay in the order in which they were stored', () => {
  assert.deepEqual(namesOf([device('b', 'interface'), device('a', 'interface', 'bridge', 1)]), ['b', 'a']);
});

test('devices of a definition are told apart by their medium, and others by their row', () => {
  const disk = { type: 'disk', media: 'disk', name: 'disk' };
  const sound = { type: 'other', row: { type: 'sound' }, name: 'sound' };
  const video = { type: 'other', row: { type: 'video' }, name: 'video' };
  assert.deepEqual(namesOf([sound, disk, { ...disk, media: 'cdrom', name: 'cd' }, video]), [
    'video',
    'cd',
    'disk',
    'sound',
  ]);
});
