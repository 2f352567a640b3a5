import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressText } from '#api/device-address.ts';
import type { HostDevice } from '#api/host-api.ts';
import { deviceEntries } from '#node/host-api/device-entries.ts';
import { placeAsLibvirt } from '#node/host-api/place-as-libvirt.ts';

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
  'devices by class, and the slot of the agent left free': {
    devices: [disk, video, nic],
    want: { 'disk-virtio0': '0000:00:05.0', 'dev-video0': '0000:00:02.0', 'nic-net0': '0000:00:03.0' },
  },
  'no slot for an agent that is switched off': {
    devices: [disk, video, nic],
    vmchannel: 'false',
    want: { 'disk-virtio0': '0000:00:04.0', 'dev-video0': '0000:00:02.0', 'nic-net0': '0000:00:03.0' },
  },
  'the controller of the agent where it is sent': {
    devices: [disk, video, { type: 'controller', device: 'virtio-serial' }],
    want: { 'disk-virtio0': '0000:00:04.0', 'dev-video0': '0000:00:02.0', 'dev-controller0': '0000:00:03.0' },
  },
  'disks by their index': {
    devices: [{ ...disk, index: 1 }, { ...disk, index: 0 }, video],
    vmchannel: false,
    want: { 'disk-virtio1': '0000:00:04.0', 'disk-virtio0': '0000:00:03.0', 'dev-video0': '0000:00:02.0' },
  },
  'addresses that are sent stay, and others take the lowest free slot': {
    devices: [{ ...disk, address: pci('0x03') }, { ...video, address: pci('0x02') }, nic, balloon],
    want: {
      'disk-virtio0': '0000:00:03.0',
      'dev-video0': '0000:00:02.0',
      'nic-net0': '0000:00:04.0',
      balloon0: '0000:00:05.0',
    },
  },
  'the SCSI controller that disks need, in its class': {
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
  'devices of q35 behind root ports, but for video': {
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
    const faults: string[] = [];
    const sent = devices.map((device, i) => ({ field: `devices[${i}]`, device }));
    const entries = deviceEntries(sent, { chipset: machine === 'q35' ? 'q35' : 'i440fx' }, faults);
    assert.deepEqual(faults, []);
    const { rows } = placeAsLibvirt(entries, { machine, vmchannel });
    assert.deepEqual(Object.fromEntries(rows.map((row) => [row.id, addressText(row)])), want);
  });
}

test('a conventional card of q35 gets another place than behind a bridge, and a note says so', () => {
  const sent = [{ field: 'nic', device: { ...nic, nicModel: 'rtl8139' } }];
  const entries = deviceEntries(sent, { chipset: 'q35' }, []);
  const { rows, notes } = placeAsLibvirt(entries, { machine: 'q35' });
  assert.equal(rows[0]?.address, undefined);
  assert.match(notes.join(), /^nic-net0: libvirt has it at 0000:\d\d:01\.0, behind a PCI bridge/);
});
