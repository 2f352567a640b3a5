import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { defineOtherDevices } from '#node/definition/devices/other-devices.ts';

const at = (slot: string, fn = '0x0') => ({ type: 'pci', domain: '0x0000', bus: '0x00', slot, function: fn });
const row = (kind: string, overrides: Partial<LearnedDevice> = {}): LearnedDevice => {
  const [type = '', device = ''] = kind.split('/');
  return { id: 'x0', type, device, ...overrides };
};
const model = (name: string) => ({ specParams: { model: name } });

const drivers: Record<string, { row: LearnedDevice; want: string; note?: string }> = {
  'a virtio-serial controller': { row: row('controller/virtio-serial', model('virtio')), want: 'virtio-serial-pci' },
  'an xhci controller': { row: row('controller/usb', model('qemu-xhci')), want: 'qemu-xhci' },
  "NEC's xhci controller": { row: row('controller/usb', model('nec-xhci')), want: 'nec-usb-xhci' },
  'an ehci controller': { row: row('controller/usb', model('ich9-ehci1')), want: 'ich9-usb-ehci1' },
  'the sound of an ICH6': { row: row('sound/ich6'), want: 'intel-hda' },
  'the sound of an ICH9': { row: row('sound/ich9'), want: 'ich9-intel-hda' },
  'AC97 sound': { row: row('sound/ac97'), want: 'AC97' },
  'a standard VGA': { row: row('video/vga'), want: 'VGA' },
  'a Cirrus card': { row: row('video/cirrus'), want: 'cirrus-vga' },
  'a Bochs display': { row: row('video/bochs'), want: 'bochs-display' },
  'a watchdog': { row: row('watchdog/i6300esb'), want: 'i6300esb' },
  'a watchdog that is identified by its model': { row: row('watchdog/watchdog', model('i6300esb')), want: 'i6300esb' },
  'a managed device that no field of a spec can ask for': {
    row: row('sound/ich6', { managed: true }),
    want: 'intel-hda',
  },
  'a QXL card as a standard VGA': {
    row: row('video/qxl', { address: at('0x02') }),
    want: 'VGA',
    note: 'Device "x0" (video/qxl at 0000:00:02.0) is replaced with a standard VGA at the same address.',
  },
};
for (const [name, { row, want, note }] of Object.entries(drivers)) {
  test(`passes back ${name}`, () => {
    const { devices, notes } = defineOtherDevices([row], new Set());
    const { id: _id, address: _address, ...kept } = row;
    assert.deepEqual(
      devices.map(({ device }) => device),
      [{ type: 'other', id: 'x0', driver: want, row: kept }],
    );
    assert.deepEqual(notes, note === undefined ? [] : [note]);
  });
}

test('treats a special managed device as unmanaged', () => {
  const special = row('sound/ich6', { managed: true, specialManaged: true });
  const { devices } = defineOtherDevices([special], new Set());
  assert.deepEqual(devices[0]?.device.row, { type: 'sound', device: 'ich6', managed: false });
});

const leftOut: Record<string, { row: LearnedDevice; note?: RegExp }> = {
  'unsupported hardware, with a note': {
    row: row('hostdev/gpu', { address: at('0x05') }),
    note: /^Device "x0" \(hostdev\/gpu at 0000:00:05\.0\) is left out: this hardware is not supported\.$/,
  },
  'a USB controller of an unsupported model': {
    row: row('controller/usb', model('vt82c686b-uhci')),
    note: /model vt82c686b-uhci\) is left out: this hardware/,
  },
  'a device at a function other than 0, which a guest would not find': {
    row: row('controller/usb', { ...model('ich9-ehci1'), address: at('0x1d', '0x7') }),
    note: /at 0000:00:1d\.7\) is left out: multifunction devices/,
  },
  'an id that is not valid in QEMU': { row: row('sound/ich6', { id: '3f,x' }), note: /its id is not valid in QEMU\.$/ },
  'an id that is reserved for pluggable devices': {
    row: row('sound/ich6', { id: 'nic-a' }),
    note: /reserved for another device\.$/,
  },
  'an id whose bus would have the name of a bus of the machine': {
    row: row('controller/usb', { id: 'pcie', ...model('qemu-xhci') }),
    note: /reserved for another device\.$/,
  },
  "the chipset's own USB": { row: row('controller/usb', model('piix3-uhci')) },
  'root ports': { row: row('controller/pcie-root-port') },
  'the controllers of the machine': { row: row('controller/ide') },
  'disks, which the spec decides': { row: row('disk/disk') },
  'types without hardware': { row: row('graphics/vnc') },
  'unplugged devices': { row: row('sound/ich6', { plugged: false }) },
  'devices that the spec defines with the same id': { row: row('sound/ich6', { id: 'own' }) },
};
for (const [name, { row, note }] of Object.entries(leftOut)) {
  test(`leaves out ${name}`, () => {
    const { devices, notes } = defineOtherDevices([row], new Set(['own']));
    assert.deepEqual(devices, []);
    assert.equal(notes.length, note === undefined ? 0 : 1);
    if (note !== undefined) assert.match(notes[0] ?? '', note);
  });
}
