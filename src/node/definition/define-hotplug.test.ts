import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { driveAddress } from '#node/hardware/drive-address.ts';
import { parsePciAddress, pciAddressToMap, formatAnyAddress } from '#api/devices/pci-address.ts';
import type { KnownDevices } from '#api/devices/known-devices.ts';
import type { HotplugPlacement } from '#node/definition/addresses/place-hotplugged.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { defineHotplugDisk, defineHotplugInterface } from '#node/definition/define-hotplug.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

type Devices = NonNullable<DomainSpec['devices']>;

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
  /** The devices of the running guest. */
  has?: Devices;
  /** The record at its start; default: empty. */
  before?: readonly LearnedDevice[];
  /** The devices to add to the spec; the last one of a list is plugged. */
  plugs: Devices;
  /** The current record; default: the devices of the guest. */
  known?: KnownDevices;
  want: string | RegExp;
}

function plug({ machine = 'q35', has = {}, before, plugs, known }: Case): HotplugPlacement {
  const current = start(machine, has, before && { devices: before });
  const vmi = vmiOf(machine, {
    disks: [...(has.disks ?? []), ...(plugs.disks ?? [])],
    interfaces: [...(has.interfaces ?? []), ...(plugs.interfaces ?? [])],
  });
  const input = { vmi, current, known: known ?? { devices: toLearnedDevices(current) } };
  const [nic, disk] = [plugs.interfaces?.at(-1), plugs.disks?.at(-1)];
  if (nic !== undefined) return defineHotplugInterface({ ...input, name: nic.name });
  const medium = { source: { path: '/data/d.img', format: 'raw' as const }, readonly: false };
  return defineHotplugDisk({ ...input, name: disk?.name ?? '', medium });
}

const cases: Record<string, Case> = {
  'plugs an interface into the next port': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: nics('b') },
    want: '0000:02:00.0',
  },
  'plugs a virtio disk into the next port': {
    has: { interfaces: nics('a') },
    plugs: { disks: [{ name: 'd' }] },
    want: '0000:02:00.0',
  },
  'restores the place of a recorded device': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: nics('b') },
    known: { devices: [nicRow('b', '0000:05:00.0')] },
    want: '0000:05:00.0',
  },
  'does not use the place of a recorded device that is not in the guest': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: nics('b') },
    known: { devices: [nicRow('gone', '0000:02:00.0')] },
    want: '0000:03:00.0',
  },
  'does not use the place that the spec names for an absent interface': {
    has: { interfaces: [{ name: 'a', state: 'absent', pciAddress: '0000:01:00.0' }] },
    plugs: { interfaces: nics('b') },
    want: '0000:02:00.0',
  },
  'does not use the place that the spec names for another device that is not plugged yet': {
    has: { interfaces: nics('a') },
    plugs: { disks: [{ name: 'd', disk: { pciAddress: '0000:02:00.0' } }], interfaces: nics('b') },
    want: '0000:03:00.0',
  },
  'uses the place of a device that is gone if nothing else is free, never that of one that is only unplugged': {
    has: { interfaces: nics('a', 'b', 'c') },
    plugs: { interfaces: nics('x') },
    known: {
      devices: [
        { ...nicRow('unplugged', '0000:04:00.0'), plugged: false },
        ...[5, 6, 7, 8].map((bus) => ({ ...nicRow(`gone${bus}`, `0000:0${bus}:00.0`), gone: true as const })),
      ],
    },
    want: '0000:05:00.0',
  },
  'assigns a new place to a device that returns if its own belongs to one that is only unplugged': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: nics('x') },
    known: {
      devices: [
        { ...nicRow('unplugged', '0000:04:00.0'), plugged: false },
        { ...nicRow('x', '0000:04:00.0'), gone: true },
      ],
    },
    want: '0000:02:00.0',
  },
  'assigns a new place to a device that returns if the spec names its own for another one': {
    has: { interfaces: nics('a') },
    plugs: { disks: [{ name: 'd', disk: { pciAddress: '0000:04:00.0' } }], interfaces: nics('x') },
    known: { devices: [{ ...nicRow('x', '0000:04:00.0'), gone: true }] },
    want: '0000:02:00.0',
  },
  'returns a device that was gone to its place': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: nics('x') },
    known: { devices: [{ ...nicRow('x', '0000:04:00.0'), gone: true }] },
    want: '0000:04:00.0',
  },
  'assigns a new place if the recorded one is occupied': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: nics('b') },
    known: { devices: [nicRow('b', '0000:01:00.0')] },
    want: '0000:02:00.0',
  },
  'prefers the spec to the record': {
    plugs: { interfaces: [{ name: 'b', pciAddress: '0000:06:00.0' }] },
    known: { devices: [nicRow('b', '0000:05:00.0')] },
    want: '0000:06:00.0',
  },
  'refuses a named place that is occupied': {
    has: { interfaces: nics('a') },
    plugs: { interfaces: [{ name: 'b', pciAddress: '0000:01:00.0' }] },
    want: /^0000:01:00\.0 is the address of nic-a$/,
  },
  'refuses a named place whose port the guest does not have': {
    plugs: { interfaces: [{ name: 'b', pciAddress: '0000:09:00.0' }] },
    want: /^the running guest has no port at 0000:09:00\.0; restart it$/,
  },
  'refuses a named place that is not behind a port': {
    plugs: { interfaces: [{ name: 'b', pciAddress: '0000:00:05.0' }] },
    want: /^0000:00:05\.0 is not a valid address: must be one of /,
  },
  'ignores a record of another chipset': {
    plugs: { interfaces: nics('b') },
    known: { machine: 'pc-i440fx-7.2', devices: [nicRow('b', '0000:05:00.0')] },
    want: '0000:01:00.0',
  },
  'keeps the place of a device that is already in the guest': {
    has: { interfaces: nics('a', 'b') },
    plugs: { interfaces: nics('a') },
    known: { devices: [nicRow('a', '0000:07:00.0')] },
    want: '0000:01:00.0',
  },
  'refuses a device if no port is free': {
    has: { interfaces: nics(...Array.from({ length: 28 }, (_, i) => `n${i}`)), disks: nics('a', 'b', 'c', 'd') },
    plugs: { interfaces: nics('x') },
    want: /^no PCI port is free in the running guest/,
  },
  'plugs a scsi disk into the next unit': { has: { disks: scsi('a', 'b') }, plugs: { disks: scsi('c') }, want: '2' },
  'restores the recorded unit of a scsi disk': {
    has: { disks: scsi('a') },
    plugs: { disks: scsi('c') },
    known: { devices: [{ id: 'disk-c', type: 'disk', device: 'disk', address: driveAddress(7) }] },
    want: '7',
  },
  'does not count units of sata disks for scsi disks': {
    has: { disks: [{ name: 'a', disk: { bus: 'sata' } }] },
    plugs: { disks: scsi('c') },
    want: '0',
  },
  'refuses a scsi disk for a guest without a controller': {
    before: [nicRow('gone', '0000:01:00.0')],
    plugs: { disks: scsi('c') },
    want: /^the guest has no SCSI controller; restart it with a scsi disk/,
  },
  'refuses a sata disk': {
    plugs: { disks: [{ name: 'c', disk: { bus: 'sata' } }] },
    want: /^a disk on the bus sata needs a restart; only scsi and virtio/,
  },
  'refuses a cdrom': {
    plugs: { disks: [{ name: 'c', cdrom: { bus: 'scsi' } }] },
    want: /^a cdrom drive needs a restart$/,
  },
  'plugs into the next slot of the bus on i440fx': {
    machine: 'pc',
    has: { interfaces: nics('a') },
    plugs: { interfaces: [{ name: 'b', model: 'rtl8139' }] },
    want: '0000:00:07.0',
  },
  'restores a recorded slot on i440fx': {
    machine: 'pc',
    plugs: { interfaces: nics('b') },
    known: { machine: 'pc-i440fx-6.2', devices: [nicRow('b', '0000:00:0c.0')] },
    want: '0000:00:0c.0',
  },
  'refuses a conventional interface on q35': {
    plugs: { interfaces: [{ name: 'b', model: 'e1000' }] },
    want: /^an interface of the model e1000 needs a restart$/,
  },
  'refuses a ninth e1000e': {
    has: { interfaces: Array.from({ length: 8 }, (_, i) => ({ name: `n${i}`, model: 'e1000e' as const })) },
    plugs: { interfaces: [{ name: 'x', model: 'e1000e' }] },
    want: /^spec\.domain\.devices\.interfaces\[8\]\.model: a guest can have at most 8/,
  },
};
for (const [name, given] of Object.entries(cases)) {
  test(name, () => {
    const { device, problem } = plug(given);
    const { want } = given;
    if (typeof want === 'string') {
      assert.equal(problem, undefined);
      const { address = {} } = device ?? {};
      assert.equal(address['type'] === 'drive' ? address['unit'] : formatAnyAddress(address), want);
    } else assert.match(problem ?? '', want);
  });
}

test('a hotplugged disk has no boot order', () => {
  const { device } = plug({ plugs: { disks: [{ name: 'd', bootOrder: 1 }] }, want: '' });
  assert.ok(device !== undefined && !('bootOrder' in device));
});

test('refuses devices that the spec does not have', () => {
  const current = start('q35', {});
  const input = { vmi: vmiOf('q35', { interfaces: nics('a') }), current, known: { devices: [] }, name: 'x' };
  const medium = { source: { path: '/x', format: 'raw' as const }, readonly: false };
  assert.match(defineHotplugDisk({ ...input, medium }).problem ?? '', /no disk "x"/);
  assert.match(defineHotplugInterface(input).problem ?? '', /no interface "x"/);
});
