/** The content of a record that is rebuilt after it was lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION, NEW_LAYOUT_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import { buildIdentityState, replayChanges } from '#api/identity/identity-changes.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { SnapshotRecord } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { decideDeviceMap } from '#controllers/device-map/decide-device-map.ts';
import { type DeviceMapWorld, dueReading } from '#controllers/device-map/device-map-world.ts';
import type { DeviceReading } from '#controllers/device-map/reading.ts';
import type { Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T12:00:00Z';
const stored = { name: 'db', namespace: 'ns', resourceVersion: '1', creationTimestamp: NOW };

const at = (bus: string) => ({ type: 'pci', bus, slot: '0x00' });
const disk = (name: string, bus: string): LearnedDevice => ({
  id: `disk-${name}`,
  type: 'disk',
  device: 'disk',
  name,
  address: at(bus),
  managed: true,
});
const nic = (bus: string): LearnedDevice => ({
  id: 'nic-default',
  type: 'interface',
  device: 'virtio',
  name: 'default',
  address: at(bus),
  managed: true,
});

const VM_METADATA = { ...stored, uid: 'vm-uid' };

function aVm(annotations: Record<string, string> = {}, status: VmStatus = { identityRecordUID: 'lost-record' }) {
  const interfaces = [{ name: 'default', masquerade: {}, state: 'absent' }];
  const devices = { disks: [{ name: 'root' }], interfaces };
  return {
    metadata: { ...VM_METADATA, annotations },
    spec: { runStrategy: 'Halted', template: { spec: { domain: { devices } } } },
    status,
  } as unknown as Stored<VirtualMachine>;
}

function aRecord(status?: IdentityStatus): Stored<VirtualMachineIdentity> {
  const metadata = { ...stored, uid: 'new-record', ownerReferences: [vmOwnerReference({ metadata: VM_METADATA })] };
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata,
    spec: {},
    ...(status && { status }),
  };
}

const vmi = {
  metadata: { ...stored, uid: 'vmi-1', ownerReferences: [vmOwnerReference({ metadata: VM_METADATA })] },
  spec: { domain: {} },
  status: {
    phase: 'Running',
    nodeName: 'node-1',
    machine: { type: 'pc-q35-7.2' },
    deviceHash: 'h1',
    deviceRevision: 10,
  },
} as unknown as Stored<VirtualMachineInstance>;

const reading: DeviceReading = {
  vmId: 'vmi-1',
  machine: 'pc-q35-7.2',
  hash: 'h1',
  revision: 10,
  devices: [disk('root', '0x02')],
  ignored: 0,
};

const PAST = [{ at: '2026-01-01T09:00:00Z', what: 'first seen', cause: 'the start of instance vmi-0' }];
const snapshot: SnapshotRecord = {
  name: 'nightly',
  takenAt: '2026-01-01T10:00:00Z',
  identity: {
    spec: {},
    status: {
      machine: { type: 'pc-q35-7.2' },
      devices: [disk('root', '0x02'), nic('0x05')],
      freed: [disk('old', '0x03')],
      deviceHash: 'h0',
      deviceRevision: 99,
      instance: 'vmi-0',
      learnedAt: '2026-01-01T09:00:00Z',
      history: PAST,
    },
  },
};

function aWorld(world: Partial<DeviceMapWorld> = {}): DeviceMapWorld {
  return { identity: aRecord(), vm: aVm(), special: [], now: NOW, ...world };
}

const statusOf = (world: Partial<DeviceMapWorld>) =>
  decideDeviceMap(aWorld(world)).status as IdentityStatus | undefined;
const causes = (status: IdentityStatus | undefined) => status?.history?.map(({ cause }) => cause);

test('the snapshot gives machine type, rows, freed places and history; the guest is read again', () => {
  assert.deepEqual(statusOf({ snapshot }), {
    machine: { type: 'pc-q35-7.2' },
    devices: [disk('root', '0x02'), nic('0x05')],
    freed: [disk('old', '0x03')],
    instance: 'vmi-0',
    learnedAt: NOW,
    history: [
      ...PAST,
      {
        at: NOW,
        what: 'record lost; 2 devices taken over',
        cause: 'rebuilt from snapshot nightly of 2026-01-01T10:00:00Z',
        changes: [],
      },
    ],
    recorded: {},
  });
});

test('the entries of a rebuilt record lead from the state in the snapshot to the record', () => {
  const spec = { firmware: { uuid: 'new' } };
  const identity = { ...aRecord(), spec };
  const saved = { ...snapshot, identity: { ...snapshot.identity, spec: { firmware: { uuid: 'old', serial: 's' } } } };
  const status = statusOf({ identity, snapshot: saved });
  const entries = status?.history?.slice(PAST.length) ?? [];
  const replayed = entries.reduce(
    (state, { changes = [] }) => replayChanges(state, changes),
    buildIdentityState(saved.identity.spec, saved.identity.status),
  );
  assert.deepEqual(replayed, buildIdentityState(spec, status));
  assert.deepEqual(
    entries.flatMap(({ changes = [] }) => changes.map(({ field }) => field)),
    ['firmware.uuid', 'firmware.serial'],
  );
});

test('the snapshot is recorded before the guest, whose devices then count; unplugged devices keep their place', () => {
  const world = { snapshot, vmi };
  assert.equal(dueReading(aWorld(world)), undefined);
  const initial = aRecord(statusOf(world));
  assert.deepEqual(dueReading(aWorld({ identity: initial, vmi })), { node: 'node-1', vmId: 'vmi-1' });
  const moved = { ...reading, devices: [disk('root', '0x04')] };
  const read = statusOf({ identity: initial, vmi, reading: moved });
  assert.deepEqual(read?.devices, [disk('root', '0x04'), { ...nic('0x05'), plugged: false }]);
  assert.deepEqual(read?.freed, [disk('old', '0x03')]);
});

test('without a snapshot the running guest is read, and the history says so', () => {
  const status = statusOf({ vmi, reading });
  assert.deepEqual(status?.devices, [disk('root', '0x02')]);
  assert.deepEqual(causes(status), ['rebuilt from the running guest, instance vmi-1']);
});

test('a guest that started after a new layout was accepted is not the source of a rebuild', () => {
  const vm = aVm({ [NEW_LAYOUT_ANNOTATION]: 'lost-record' });
  assert.deepEqual(causes(statusOf({ vm, vmi, reading })), [
    'a new layout was accepted after the loss of record lost-record',
  ]);
});

test('the import is the last source', () => {
  const annotations = {
    [IMPORTED_DEVICES_ANNOTATION]: JSON.stringify({ from: 'OVF', devices: [disk('root', '0x07')] }),
  };
  const status = statusOf({ vm: aVm(annotations) });
  assert.deepEqual(status?.devices, [disk('root', '0x07')]);
  assert.deepEqual(causes(status), ['rebuilt from the devices of its import']);
  assert.deepEqual(statusOf({ vm: aVm(annotations), snapshot })?.devices?.[0], disk('root', '0x02'));
  const broken = { [IMPORTED_DEVICES_ANNOTATION]: 'x' };
  assert.deepEqual(
    statusOf({ vm: aVm(broken), snapshot })?.devices?.[0],
    disk('root', '0x02'),
    'whatever the annotation contains',
  );
});

test('a record that never had devices is not lost: its first start is a first start', () => {
  const vm = aVm({}, {});
  assert.deepEqual(causes(statusOf({ vm, vmi, reading })), ['the start of instance vmi-1']);
});

test('a record that lost only its devices continues its own history', () => {
  const own = { at: '2026-01-01T08:00:00Z', what: 'first start', cause: 'first start' };
  const later = { at: '2026-01-01T11:00:00Z', what: 'restored', cause: 'VirtualMachineRestore re' };
  const spec = { firmware: { uuid: 'x' } };
  const identity = { ...aRecord({ recorded: spec, history: [own, later] }), spec };
  const saved = { ...snapshot, identity: { ...snapshot.identity, spec: { firmware: { uuid: 'y' } } } };
  const status = statusOf({ identity, snapshot: saved });
  assert.deepEqual(status?.history?.slice(0, 2), [own, later]);
  const fields = status?.history?.slice(2).flatMap(({ changes = [] }) => changes.map(({ field }) => field)) ?? [];
  assert.ok(!fields.includes('firmware.uuid'), 'the spec has not changed');
  assert.ok(fields.includes('devices.disk-root'), 'the devices were restored');
});

test('a stopped VM without a source for its record writes nothing', () => {
  const identity = { ...aRecord(), spec: { firmware: { uuid: 'x' } } };
  assert.deepEqual(decideDeviceMap(aWorld({ identity })), { changes: [] });
});

test('the state claim of the snapshot is kept', () => {
  const status = { ...snapshot.identity.status, stateClaim: 'state-of-db' };
  const rebuilt = statusOf({ snapshot: { ...snapshot, identity: { spec: {}, status } } });
  assert.equal(rebuilt?.stateClaim, 'state-of-db');
  assert.deepEqual(rebuilt?.history?.at(-1)?.changes, []);
});
