import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Domain } from '#api/domain/domain.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { driveAddress } from '#node/definition/addresses/drive-address.ts';
import { parsePciAddress, pciAddressToMap, printAddress } from '#api/pci-address.ts';
import type { KnownDevices } from '#node/definition/addresses/known-devices.ts';
import type { LatePlacement } from '#node/definition/addresses/place-late.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { defineLateDisk, defineLateInterface } from '#node/definition/define-late.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

type Devices = NonNullable<Domain['devices']>;

function vmiOf(machine: string, devices: Devices) {
  return aVmi(
    { machine: { type: machine }, devices: { autoattachPodInterface: false, ...devices } },
    {
      volumes: (devices.disks ?? []).map(({ name }) => ({ name, emptyDisk: { capacity: '1Mi' } })),
      networks: (devices.interfaces ?? []).map(({ name }) => ({ name, pod: {} })),
    },
  );
}

function start(machine: string, devices: Devices, known: KnownDevices = { devices: [] }): DomainDefinition {
  const { definition, problems } = defineDomain(anInput(vmiOf(machine, devices), { known }));
  assert.deepEqual(problems, undefined);
  return definition;
}

const pci = (text: string) => pciAddressToMap(parsePciAddress(text)!);
const nicRow = (name: string, at: string): LearnedDevice => ({
  id: `nic-${name}`,
  type: 'interface',
  device: 'virtio',
  address: pci(at),
});
const nics = (...names: string[]) => names.map((name) => ({ name }));
const scsi = (...names: string[]) => names.map((name) => ({ name, disk: { bus: 'scsi' as const } }));

interface Case {
  machine?: string;
  /** What the guest has. */
  has?: Devices;
  /** With what it started, where that is not nothing. */
  before?: readonly LearnedDevice[];
  /** What comes, last of its list. */
  comes: Devices;
  /** The record, as of now; what the guest has where it is not said. */
  known?: KnownDevices;
  want: string | RegExp;
}

function plug({ machine = 'q35', has = {}, before, comes, known }: Case): LatePlacement {
  const current = start(machine, has, before && { devices: before });
  const vmi = vmiOf(machine, {
    disks: [...(has.disks ?? []), ...(comes.disks ?? [])],
    interfaces: [...(has.interfaces ?? []), ...(comes.interfaces ?? [])],
  });
  const input = { vmi, current, known: known ?? { devices: learnedFrom(current) } };
  const [nic, disk] = [comes.interfaces?.at(-1), comes.disks?.at(-1)];
  if (nic !== undefined) return defineLateInterface({ ...input, name: nic.name });
  const medium = { source: { path: '/data/d.img', format: 'raw' as const }, readonly: false };
  return defineLateDisk({ ...input, name: disk?.name ?? '', medium });
}

const cases: Record<string, Case> = {
  'an interface gets the next port': {
    has: { interfaces: nics('a') },
    comes: { interfaces: nics('b') },
    want: '0000:02:00.0',
  },
  'a virtio disk gets the next port': {
    has: { interfaces: nics('a') },
    comes: { disks: [{ name: 'd' }] },
    want: '0000:02:00.0',
  },
  'what has a row comes back to its own place': {
    has: { interfaces: nics('a') },
    comes: { interfaces: nics('b') },
    known: { devices: [nicRow('b', '0000:05:00.0')] },
    want: '0000:05:00.0',
  },
  'the place of a row that is not in the guest is left alone': {
    has: { interfaces: nics('a') },
    comes: { interfaces: nics('b') },
    known: { devices: [nicRow('gone', '0000:02:00.0')] },
    want: '0000:03:00.0',
  },
  'so is the place that the spec names for an absent interface': {
    has: { interfaces: [{ name: 'a', state: 'absent', pciAddress: '0000:01:00.0' }] },
    comes: { interfaces: nics('b') },
    want: '0000:02:00.0',
  },
  'so is the place that it names for what is to come after this one': {
    has: { interfaces: nics('a') },
    comes: { disks: [{ name: 'd', disk: { pciAddress: '0000:02:00.0' } }], interfaces: nics('b') },
    want: '0000:03:00.0',
  },
  'where nothing else is free, such a place is taken': {
    has: { interfaces: nics('a', 'b', 'c', 'd') },
    comes: { interfaces: nics('x') },
    known: { devices: [5, 6, 7, 8].map((bus) => nicRow(`gone${bus}`, `0000:0${bus}:00.0`)) },
    want: '0000:05:00.0',
  },
  'a row whose place somebody has gets another one': {
    has: { interfaces: nics('a') },
    comes: { interfaces: nics('b') },
    known: { devices: [nicRow('b', '0000:01:00.0')] },
    want: '0000:02:00.0',
  },
  'what the spec names stands above the record': {
    comes: { interfaces: [{ name: 'b', pciAddress: '0000:06:00.0' }] },
    known: { devices: [nicRow('b', '0000:05:00.0')] },
    want: '0000:06:00.0',
  },
  'a named place that is taken': {
    has: { interfaces: nics('a') },
    comes: { interfaces: [{ name: 'b', pciAddress: '0000:01:00.0' }] },
    want: /^0000:01:00\.0 is the place of nic-a$/,
  },
  'a named place whose port the guest does not have': {
    comes: { interfaces: [{ name: 'b', pciAddress: '0000:09:00.0' }] },
    want: /^the running guest has no port at 0000:09:00\.0 yet: restart it$/,
  },
  'a named place that no guest has': {
    comes: { interfaces: [{ name: 'b', pciAddress: '0000:00:05.0' }] },
    want: /^0000:00:05\.0 is no place for it: must be one of /,
  },
  'a record of another chipset says nothing': {
    comes: { interfaces: nics('b') },
    known: { machine: 'pc-i440fx-7.2', devices: [nicRow('b', '0000:05:00.0')] },
    want: '0000:01:00.0',
  },
  'what is in the guest already stays': {
    has: { interfaces: nics('a', 'b') },
    comes: { interfaces: nics('a') },
    known: { devices: [nicRow('a', '0000:07:00.0')] },
    want: '0000:01:00.0',
  },
  'a guest without a free port': {
    has: { interfaces: nics(...Array.from({ length: 28 }, (_, i) => `n${i}`)), disks: nics('a', 'b', 'c', 'd') },
    comes: { interfaces: nics('x') },
    want: /^no PCI port is free in the running guest/,
  },
  'a scsi disk gets the next unit': { has: { disks: scsi('a', 'b') }, comes: { disks: scsi('c') }, want: '2' },
  'a scsi disk whose unit is recorded gets it back': {
    has: { disks: scsi('a') },
    comes: { disks: scsi('c') },
    known: { devices: [{ id: 'disk-c', type: 'disk', device: 'disk', address: driveAddress(7) }] },
    want: '7',
  },
  'units of sata disks do not count for scsi ones': {
    has: { disks: [{ name: 'a', disk: { bus: 'sata' } }] },
    comes: { disks: scsi('c') },
    want: '0',
  },
  'a scsi disk for a guest without a controller': {
    before: [nicRow('gone', '0000:01:00.0')],
    comes: { disks: scsi('c') },
    want: /^the guest has no SCSI controller; a restart with a scsi disk/,
  },
  'a sata disk': {
    comes: { disks: [{ name: 'c', disk: { bus: 'sata' } }] },
    want: /^a disk on the bus sata needs a restart; only scsi and virtio/,
  },
  'a cdrom': { comes: { disks: [{ name: 'c', cdrom: { bus: 'scsi' } }] }, want: /^a cdrom drive needs a restart$/ },
  'on i440fx, the next slot of the bus': {
    machine: 'pc',
    has: { interfaces: nics('a') },
    comes: { interfaces: [{ name: 'b', model: 'rtl8139' }] },
    want: '0000:00:07.0',
  },
  'on i440fx, a recorded slot': {
    machine: 'pc',
    comes: { interfaces: nics('b') },
    known: { machine: 'pc-i440fx-6.2', devices: [nicRow('b', '0000:00:0c.0')] },
    want: '0000:00:0c.0',
  },
  'what the machine cannot have': {
    comes: { interfaces: [{ name: 'b', model: 'e1000' }] },
    want: /^an interface of the model e1000 needs a restart$/,
  },
  'one e1000e too many': {
    has: { interfaces: Array.from({ length: 8 }, (_, i) => ({ name: `n${i}`, model: 'e1000e' as const })) },
    comes: { interfaces: [{ name: 'x', model: 'e1000e' }] },
    want: /^spec\.domain\.devices\.interfaces\[8\]\.model: a guest has room for 8/,
  },
};
for (const [name, given] of Object.entries(cases)) {
  test(name, () => {
    const { device, problem } = plug(given);
    const { want } = given;
    if (typeof want === 'string') {
      assert.equal(problem, undefined);
      const { address = {} } = device ?? {};
      assert.equal(address['type'] === 'drive' ? address['unit'] : printAddress(address), want);
    } else assert.match(problem ?? '', want);
  });
}

test('what comes late boots nothing in this run', () => {
  const { device } = plug({ comes: { disks: [{ name: 'd', bootOrder: 1 }] }, want: '' });
  assert.ok(device !== undefined && !('bootOrder' in device));
});

test('what the spec does not have cannot come', () => {
  const current = start('q35', {});
  const input = { vmi: vmiOf('q35', { interfaces: nics('a') }), current, known: { devices: [] }, name: 'x' };
  const medium = { source: { path: '/x', format: 'raw' as const }, readonly: false };
  assert.match(defineLateDisk({ ...input, medium }).problem ?? '', /no disk "x"/);
  assert.match(defineLateInterface(input).problem ?? '', /no interface "x"/);
});
