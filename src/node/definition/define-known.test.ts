/** Addresses of recorded devices: how the record, the spec and the layout decide them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { pciAddressFromMap, formatPciAddress } from '#api/devices/pci-address.ts';
import { parsePciAddress, pciAddressToMap } from '#api/devices/pci-address.ts';
import { driveAddress, ideAddress } from '#node/hardware/drive-address.ts';
import type { KnownDevices } from '#api/devices/known-devices.ts';
import { defineDomain, type DefineResult } from '#node/definition/define-domain.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

const pci = (text: string) => pciAddressToMap(parsePciAddress(text)!);
const row = (id: string, kind: string, address?: string | Record<string, string>): LearnedDevice => {
  const [type = '', device = ''] = kind.split('/');
  const place = typeof address === 'string' ? pci(address) : address;
  return { id, type, device, ...(place !== undefined && { address: place }) };
};
const disk = (name: string, bus: string, address: Record<string, string>) => ({
  ...row(`disk-${name}`, 'disk/disk', address),
  specParams: { bus },
});

interface Given {
  machine?: string;
  devices?: NonNullable<DomainSpec['devices']>;
  known: KnownDevices | readonly LearnedDevice[];
}

function define({ machine = 'q35', devices = {}, known }: Given): DefineResult {
  const vmi = aVmi(
    { machine: { type: machine }, devices: { autoattachPodInterface: false, ...devices } },
    {
      volumes: (devices.disks ?? []).map(({ name }) => ({ name, emptyDisk: { capacity: '1Mi' } })),
      networks: (devices.interfaces ?? []).map(({ name }) => ({ name, pod: {} })),
    },
  );
  return defineDomain(anInput(vmi, { known: 'devices' in known ? known : { devices: known } }));
}

/** Returns PCI addresses as text, and units of drives as `bus:unit`. */
function placesOf({ definition, problems }: DefineResult): Record<string, string> {
  assert.deepEqual(problems, undefined);
  const found = definition.devices.filter(
    ({ type, address }) => type !== 'root-port' && type !== 'agent-channel' && address !== undefined,
  );
  return Object.fromEntries(
    found.map(({ id, address = {} }) => {
      const at = pciAddressFromMap(address);
      return [id, at === undefined ? `${address['bus']}:${address['unit']}` : formatPciAddress(at)];
    }),
  );
}

const nics = (...names: string[]) => names.map((name) => ({ name }));

const places: Record<string, Given & { want: Record<string, string> }> = {
  'places the devices of a new q35 guest by its layout': {
    devices: { interfaces: nics('a'), disks: [{ name: 'd' }, { name: 'cd', cdrom: {} }], rng: {} },
    known: [],
    want: {
      scsi0: '0000:00:06.0',
      'nic-a': '0000:01:00.0',
      'disk-d': '0000:02:00.0',
      'disk-cd': '0:0',
      rng0: '0000:00:09.0',
      balloon0: '0000:00:08.0',
      display0: '0000:00:01.0',
      'virtio-serial0': '0000:00:07.0',
    },
  },
  'places interfaces, disks and then the rest of a new i440fx guest': {
    machine: 'pc',
    devices: { interfaces: nics('a'), disks: [{ name: 'd' }, { name: 'cd', cdrom: {} }], rng: {} },
    known: [],
    want: {
      scsi0: '0000:00:05.0',
      'nic-a': '0000:00:03.0',
      'disk-d': '0000:00:04.0',
      'disk-cd': '1:0',
      rng0: '0000:00:06.0',
      balloon0: '0000:00:07.0',
      display0: '0000:00:02.0',
      'virtio-serial0': '0000:00:08.0',
    },
  },
  'restores recorded fixtures on the root bus and behind ports': {
    devices: { rng: {}, interfaces: nics('a') },
    known: [
      row('scsi0', 'controller/virtio-scsi', '0000:01:00.0'),
      row('balloon0', 'balloon/memballoon', '0000:00:0d.0'),
      row('rng0', 'rng/virtio', '0000:04:00.0'),
    ],
    want: {
      scsi0: '0000:01:00.0',
      'nic-a': '0000:02:00.0',
      rng0: '0000:04:00.0',
      balloon0: '0000:00:0d.0',
    },
  },
  'moves a fixture whose recorded address does not exist to its own place': {
    known: [row('balloon0', 'balloon/memballoon', '0000:00:02.0')],
    want: { balloon0: '0000:00:08.0' },
  },
  'gives a new fixture another place if its own is occupied': {
    known: [row('sound0', 'sound/ich6', '0000:00:08.0')],
    want: { balloon0: '0000:00:0c.0', sound0: '0000:00:08.0' },
  },
  'places other recorded devices at their address, or else at the place of their kind': {
    known: [row('usb0', 'controller/virtio-serial', '0000:03:00.0'), row('sound0', 'sound/ich6')],
    want: { balloon0: '0000:00:08.0', usb0: '0000:03:00.0', sound0: '0000:00:1b.0' },
  },
  'ignores root ports of another manager': {
    known: [row('rp0', 'controller/pcie-root-port', '0000:00:01.0'), row('video0', 'video/vga')],
    want: { balloon0: '0000:00:08.0', video0: '0000:00:01.0' },
  },
  'ignores addresses of another chipset': {
    devices: { interfaces: nics('b', 'a') },
    known: {
      machine: 'pc-i440fx-7.2',
      devices: [
        row('nic-a', 'interface/virtio', '0000:00:07.0'),
        row('scsi0', 'controller/virtio-scsi', '0000:00:04.0'),
        row('sound0', 'sound/ich6', '0000:00:05.0'),
      ],
    },
    want: {
      scsi0: '0000:00:06.0',
      'nic-b': '0000:01:00.0',
      'nic-a': '0000:02:00.0',
      balloon0: '0000:00:08.0',
      sound0: '0000:00:1b.0',
    },
  },
  'keeps addresses with another machine type of the same chipset': {
    devices: { interfaces: nics('b', 'a') },
    known: { machine: 'pc-q35-6.2', devices: [row('nic-a', 'interface/virtio', '0000:01:00.0')] },
    want: { 'nic-b': '0000:02:00.0', 'nic-a': '0000:01:00.0', balloon0: '0000:00:08.0' },
  },
  'restores any recorded slot of i440fx': {
    machine: 'pc',
    devices: { interfaces: nics('a', 'b'), disks: [{ name: 'd', disk: { bus: 'ide' } }] },
    known: [
      row('nic-b', 'interface/virtio', '0000:00:02.0'),
      row('nic-a', 'interface/virtio', '0000:00:1f.0'),
      disk('d', 'ide', ideAddress(3)),
    ],
    want: { 'nic-a': '0000:00:1f.0', 'nic-b': '0000:00:02.0', 'disk-d': '1:1', balloon0: '0000:00:03.0' },
  },
  'ignores a unit that is recorded on another bus': {
    devices: { disks: [{ name: 'd', disk: { bus: 'scsi' } }] },
    known: [disk('d', 'sata', driveAddress(3))],
    want: { scsi0: '0000:00:06.0', 'disk-d': '0:0', balloon0: '0000:00:08.0' },
  },
  'assigns a new place to a disk whose bus has changed': {
    devices: { disks: [{ name: 'd' }, { name: 'e', disk: { bus: 'sata' } }] },
    known: [
      disk('d', 'scsi', driveAddress(3)),
      row('disk-e', 'disk/disk', '0000:01:00.0'),
      disk('f', 'scsi', driveAddress(9)),
    ],
    want: { 'disk-d': '0000:01:00.0', 'disk-e': '0:0', balloon0: '0000:00:08.0' },
  },
  'ignores a unit without a bus, from an old record, if the bus has fewer units': {
    devices: { disks: [{ name: 'd', disk: { bus: 'sata' } }] },
    known: [row('disk-d', 'disk/disk', driveAddress(9))],
    want: { 'disk-d': '0:0', balloon0: '0000:00:08.0' },
  },
  'does not reuse the unit of a disk that is gone on the same bus': {
    devices: {
      disks: [
        { name: 'd', disk: { bus: 'scsi' } },
        { name: 'e', disk: { bus: 'sata' } },
      ],
    },
    known: [disk('gone', 'sata', driveAddress(0))],
    want: { scsi0: '0000:00:06.0', 'disk-d': '0:0', 'disk-e': '0:1', balloon0: '0000:00:08.0' },
  },
  'keeps the place of an absent interface, whether it is recorded or named': {
    devices: {
      interfaces: [
        { name: 'a', state: 'absent', pciAddress: '0000:02:00.0' },
        { name: 'b', state: 'absent' },
        { name: 'c' },
      ],
    },
    known: [{ ...row('nic-b', 'interface/virtio', '0000:01:00.0'), plugged: false }],
    want: { 'nic-c': '0000:03:00.0', balloon0: '0000:00:08.0' },
  },
  'keeps the place that the spec names for an unplugged disk': {
    devices: { disks: [{ name: 'a', plugged: false, disk: { pciAddress: '0000:01:00.0' } }, { name: 'b' }] },
    known: [],
    want: {
      scsi0: '0000:00:06.0',
      'disk-b': '0000:02:00.0',
      balloon0: '0000:00:08.0',
      display0: '0000:00:01.0',
      'virtio-serial0': '0000:00:07.0',
    },
  },
  'assigns a new place to a returning device whose place is occupied, regardless of the order of the record': {
    devices: { interfaces: nics('a', 'b', 'c') },
    known: [
      { ...row('nic-a', 'interface/virtio', '0000:01:00.0'), plugged: false },
      row('nic-b', 'interface/virtio', '0000:01:00.0'),
      { ...row('nic-c', 'interface/virtio', '0000:01:00.0'), plugged: false },
    ],
    want: {
      'nic-a': '0000:02:00.0',
      'nic-b': '0000:01:00.0',
      'nic-c': '0000:03:00.0',
      balloon0: '0000:00:08.0',
    },
  },
  'restores the place of the first of several returning devices with the same address': {
    devices: { interfaces: nics('a', 'b') },
    known: ['nic-b', 'nic-a'].map((id) => ({ ...row(id, 'interface/virtio', '0000:04:00.0'), plugged: false })),
    want: { 'nic-a': '0000:01:00.0', 'nic-b': '0000:04:00.0', balloon0: '0000:00:08.0' },
  },
  'keeps the addresses of an imported guest and places devices without one as usual': {
    machine: 'pc',
    devices: { interfaces: nics('a', 'b'), disks: [{ name: 'boot' }] },
    known: {
      imported: true,
      devices: [
        row('sound0', 'sound/ich6', '0000:00:04.0'),
        row('nic-b', 'interface/virtio', '0000:00:03.0'),
        row('disk-boot', 'disk/disk', '0000:00:06.0'),
      ],
    },
    want: {
      'nic-a': '0000:00:05.0',
      'nic-b': '0000:00:03.0',
      'disk-boot': '0000:00:06.0',
      balloon0: '0000:00:07.0',
      sound0: '0000:00:04.0',
    },
  },
};
for (const [name, { want, ...given }] of Object.entries(places)) {
  test(name, () => assert.deepEqual(placesOf(define(given)), want));
}

const refused: Record<string, Given & { problem: string | RegExp }> = {
  'two rows with the same address': {
    devices: { interfaces: nics('a', 'b') },
    known: [row('nic-b', 'interface/virtio', '0000:01:00.0'), row('nic-a', 'interface/virtio', '0000:01:00.0')],
    problem:
      'spec.domain.devices.interfaces[0]: Invalid value: "0000:01:00.0": the record has both nic-b and nic-a at this address',
  },
  'two rows with the same unit': {
    devices: { disks: nics('a', 'b').map(({ name }) => ({ name, disk: { bus: 'scsi' as const } })) },
    known: [disk('a', 'scsi', driveAddress(4)), disk('b', 'scsi', driveAddress(4))],
    problem: 'spec.domain.devices.disks[1]: Invalid value: "4": the record has both disk-a and disk-b at this address',
  },
  'a unit that does not exist': {
    devices: { disks: [{ name: 'a', disk: { bus: 'sata' } }] },
    known: [disk('a', 'sata', driveAddress(9))],
    problem: /^spec\.domain\.devices\.disks\[0\]: Invalid value: .* the recorded address does not exist/,
  },
  'a unit of a controller that does not exist': {
    devices: { disks: [{ name: 'a', disk: { bus: 'scsi' } }] },
    known: [row('disk-a', 'disk/disk', { ...driveAddress(0), controller: '1' })],
    problem: /^spec\.domain\.devices\.disks\[0\]: Invalid value: .* the recorded address does not exist/,
  },
  'an address that is not a PCI address': {
    devices: { interfaces: nics('a') },
    known: [row('nic-a', 'interface/virtio', { type: 'ccw', cssid: '0xfe', ssid: '0x0', devno: '0x0001' })],
    problem: /^spec\.domain\.devices\.interfaces\[0\]: Invalid value: .* the recorded address does not exist/,
  },
  'a named address that another recorded device has': {
    devices: { interfaces: [{ name: 'a', pciAddress: '0000:03:00.0' }] },
    known: [row('usb0', 'controller/virtio-serial', '0000:03:00.0')],
    problem: 'spec.domain.devices.interfaces[0].pciAddress: Invalid value: "0000:03:00.0": is the address of usb0',
  },
  'another recorded device at an address that does not exist': {
    known: [row('sound0', 'sound/ich6', '0000:00:1f.0')],
    problem: /^status\.devices\[sound0\]: Invalid value: "0000:00:1f\.0": the recorded address does not exist/,
  },
  'another recorded device behind a bridge': {
    machine: 'pc',
    known: [row('sound0', 'sound/ich6', '0000:01:02.0')],
    problem: /^status\.devices\[sound0\]: Invalid value: "0000:01:02\.0": the recorded address does not exist/,
  },
  'a PCI address that i440fx does not have': {
    machine: 'pc',
    devices: { interfaces: [{ name: 'a', pciAddress: '0000:01:00.0' }] },
    known: [],
    problem:
      'spec.domain.devices.interfaces[0].pciAddress: Invalid value: "0000:01:00.0": must be one of 0000:00:02.0 to 0000:00:1f.0 (bus and function are 0)',
  },
};
for (const [name, { problem, ...given }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    const lines = (define(given).problems ?? []).map(({ field, message }) => `${field}: ${message}`);
    assert.equal(lines.length, 1, lines.join('\n'));
    if (typeof problem === 'string') assert.equal(lines[0], problem);
    else assert.match(lines[0] ?? '', problem);
  });
}

test('accepts a row with the address of a device that is gone', () => {
  const known = [row('nic-gone', 'interface/virtio', '0000:01:00.0'), row('nic-a', 'interface/virtio', '0000:01:00.0')];
  assert.equal(placesOf(define({ devices: { interfaces: nics('a') }, known }))['nic-a'], '0000:01:00.0');
});

test('neither adds nor removes the scsi controller of a recorded guest', () => {
  const has = (known: readonly LearnedDevice[]) => 'scsi0' in placesOf(define({ known }));
  assert.ok(has([]));
  assert.ok(!has([row('balloon0', 'balloon/memballoon')]));
  assert.ok(has([row('scsi0', 'controller/virtio-scsi')]));
});

test('notes devices that are left out, even if the guest is refused', () => {
  const known = [row('x', 'hostdev/gpu', '0000:00:05.0')];
  assert.match(define({ known }).notes.join(), /^Device "x" .* is left out/);
  assert.match(define({ machine: 'pc-q35-9.9', known }).notes.join(), /^Device "x" .* is left out/);
});
