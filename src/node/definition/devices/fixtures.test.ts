/** Addresses of devices other than disks and interfaces, and that they stay the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Devices } from '#api/domain/devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { formatAddress } from '#api/devices/device-address.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

const PLAIN = new Set(['scsi0', 'balloon0', 'serial0', 'display0', 'virtio-serial0', 'agent0']);
const all: Devices = {
  disks: [{ name: 'stick', disk: { bus: 'usb' } }],
  inputs: [
    { name: 'pen', type: 'tablet' },
    { name: 'pad', type: 'tablet', bus: 'virtio' },
  ],
  sound: { name: 's' },
  watchdog: { name: 'w', i6300esb: {} },
  clientPassthrough: {},
};

function rowsOf(machine: string, devices: Devices, known: readonly LearnedDevice[] = []): readonly LearnedDevice[] {
  const vmi = aVmi(
    { machine: { type: machine }, devices: { autoattachPodInterface: false, ...devices } },
    { volumes: (devices.disks ?? []).map(({ name }) => ({ name, emptyDisk: { capacity: '1Mi' } })) },
  );
  const result = defineDomain(anInput(vmi, { known: { devices: known } }));
  assert.deepEqual([result.problems, result.notes], [undefined, []]);
  return toLearnedDevices(result.definition!);
}

const placesOf = (rows: readonly LearnedDevice[]) =>
  Object.fromEntries(
    rows
      .filter(({ id, device }) => device !== 'pcie-root-port' && !PLAIN.has(id))
      .map((row) => [row.id, formatAddress(row)]),
  );

const onUsb = {
  'disk-stick': 'usb 0:1',
  'input-pen': 'usb 0:2',
  ...Object.fromEntries([0, 1, 2, 3].map((i) => [`redir-${i}`, `usb 0:${3 + i}`])),
};

test('each fixture of q35 is at its reserved place', () => {
  assert.deepEqual(placesOf(rowsOf('q35', all)), {
    xhci0: '0000:00:0a.0',
    wdt0: '0000:00:0b.0',
    'input-pad': '0000:00:0c.0',
    audio0: '0000:00:1b.0',
    ...onUsb,
  });
});

test('fixtures of i440fx come after all other devices', () => {
  assert.deepEqual(placesOf(rowsOf('pc', all)), {
    xhci0: '0000:00:05.0',
    wdt0: '0000:00:06.0',
    audio0: '0000:00:07.0',
    'input-pad': '0000:00:08.0',
    ...onUsb,
  });
});

for (const machine of ['q35', 'pc']) {
  test(`adding and removing hardware moves no device: ${machine}`, () => {
    const before = rowsOf(machine, { rng: {}, disks: [{ name: 'a' }] });
    const after = rowsOf(machine, { ...all, rng: {}, disks: [{ name: 'a' }, ...all.disks!] }, before);
    const places = placesOf(after);
    for (const [id, place] of Object.entries(placesOf(before))) assert.equal(places[id], place, id);
    const { sound: _gone, ...less } = all;
    const last = placesOf(rowsOf(machine, { ...less, rng: {}, disks: all.disks! }, after));
    for (const [id, place] of Object.entries(last)) assert.equal(place, places[id], id);
    assert.equal(last['audio0'], undefined);
  });
}

test('the USB controller stays when the devices that needed it are removed', () => {
  const before = rowsOf('q35', all);
  assert.equal(placesOf(rowsOf('q35', {}, before))['xhci0'], '0000:00:0a.0');
});

test('adds one tablet if the spec asks for an unspecified input', () => {
  const places = placesOf(rowsOf('q35', { autoattachInputDevice: true }));
  assert.deepEqual(places, { xhci0: '0000:00:0a.0', 'input-default-0': 'usb 0:1' });
});

test('the watchdog and video card of the spec replace imported ones', () => {
  const imported: LearnedDevice[] = [
    { id: 'video0', type: 'video', device: 'qxl', managed: true },
    { id: 'watchdog0', type: 'watchdog', device: 'i6300esb', managed: true },
  ];
  const rows = rowsOf('q35', { autoattachGraphicsDevice: true, watchdog: { name: 'w', i6300esb: {} } }, imported);
  const kinds = rows.filter(({ type }) => type === 'video' || type === 'watchdog').map(({ id }) => id);
  assert.deepEqual(kinds, ['display0', 'wdt0']);
});
