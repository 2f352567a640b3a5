import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAddress } from '#api/devices/device-address.ts';
import type { HostDevice } from '#api/host-api.ts';
import { buildDeviceEntries } from '#node/host-api/sent/device-entries.ts';
import { placeAsLibvirt } from '#node/host-api/definition/place-as-libvirt.ts';

const pci = (slot: string) => ({ type: 'pci', domain: '0x0000', bus: '0x00', slot, function: '0x0' });
const video = { type: 'video', device: 'cirrus' };
const nic = { type: 'interface', device: 'bridge', nicModel: 'pv' };
const disk = { type: 'disk', device: 'disk', iface: 'virtio' };
const scsiDisk = { type: 'disk', device: 'disk', iface: 'scsi' };
const balloon = { type: 'balloon', device: 'memballoon' };

interface Case {
  readonly devices: readonly HostDevice[];
  readonly machine?: string;
  readonly vmchannel?: unknown;
  readonly want: Readonly<Record<string, string>>;
}

const cases: Record<string, Case> = {
  'places devices by class, and leaves the slot of the agent channel free': {
    devices: [disk, video, nic],
    want: { 'disk-virtio0': '0000:00:05.0', 'dev-video0': '0000:00:02.0', 'nic-net0': '0000:00:03.0' },
  },
  'leaves no slot free if vmchannel is off': {
    devices: [disk, video, nic],
    vmchannel: 'false',
    want: { 'disk-virtio0': '0000:00:04.0', 'dev-video0': '0000:00:02.0', 'nic-net0': '0000:00:03.0' },
  },
  'places the controller of the agent channel if it was sent': {
    devices: [disk, video, { type: 'controller', device: 'virtio-serial' }],
    want: { 'disk-virtio0': '0000:00:04.0', 'dev-video0': '0000:00:02.0', 'dev-controller0': '0000:00:03.0' },
  },
  'places disks by their index': {
    devices: [{ ...disk, index: 1 }, { ...disk, index: 0 }, video],
    vmchannel: false,
    want: { 'disk-virtio1': '0000:00:04.0', 'disk-virtio0': '0000:00:03.0', 'dev-video0': '0000:00:02.0' },
  },
  'keeps addresses that were sent, and gives other devices the lowest free slot': {
    devices: [{ ...disk, address: pci('0x03') }, { ...video, address: pci('0x02') }, nic, balloon],
    want: {
      'disk-virtio0': '0000:00:03.0',
      'dev-video0': '0000:00:02.0',
      'nic-net0': '0000:00:04.0',
      balloon0: '0000:00:05.0',
    },
  },
  'adds the SCSI controller that a disk needs, in its class': {
    devices: [disk, scsiDisk, nic, video],
    vmchannel: false,
    want: {
      'disk-virtio0': '0000:00:05.0',
      'disk-scsi0': 'scsi 0:0:0:0',
      'nic-net0': '0000:00:03.0',
      'dev-video0': '0000:00:02.0',
      scsi0: '0000:00:04.0',
    },
  },
  'places devices of q35 behind root ports, except for video': {
    devices: [disk, video, nic, balloon],
    machine: 'q35',
    want: {
      'disk-virtio0': '0000:03:00.0',
      'dev-video0': '0000:00:01.0',
      'nic-net0': '0000:01:00.0',
      balloon0: '0000:04:00.0',
    },
  },
};

for (const [name, { devices, machine = 'pc', vmchannel, want }] of Object.entries(cases)) {
  test(name, () => {
    const errors: string[] = [];
    const sent = devices.map((device, i) => ({ field: `devices[${i}]`, device }));
    const entries = buildDeviceEntries(sent, { chipset: machine === 'q35' ? 'q35' : 'i440fx' }, errors);
    assert.deepEqual(errors, []);
    const { rows } = placeAsLibvirt(entries, { machine, vmchannel });
    assert.deepEqual(Object.fromEntries(rows.map((row) => [row.id, formatAddress(row)])), want);
  });
}

test('does not place a conventional PCI card of q35 behind a bridge, and notes that', () => {
  const sent = [{ field: 'nic', device: { ...nic, nicModel: 'rtl8139' } }];
  const entries = buildDeviceEntries(sent, { chipset: 'q35' }, []);
  const { rows, notes } = placeAsLibvirt(entries, { machine: 'q35' });
  assert.equal(rows[0]?.address, undefined);
  assert.match(notes.join(), /^nic-net0: libvirt has it at 0000:\d\d:01\.0, behind a PCI bridge/);
});
