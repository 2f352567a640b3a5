/**
 * Decisions about records. They include the cases of oVirt's tests of its monitoring: an older report is ignored; the
 * same hash causes no call; with a new hash, rows and hash are stored together. Two of its rules are overridden: events
 * for single devices, and storing the hash of a list from another source. With us a change always has a new hash, and
 * all devices are read.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderChanges } from '#api/identity/identity-change-text.ts';
import type { Devices } from '#api/domain/devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import { type IdentityStatus, MAX_HISTORY, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideDeviceMap, losesAddressesWhenStopped } from '#controllers/device-map/decide-device-map.ts';
import { type DeviceMapWorld, dueReading } from '#controllers/device-map/device-map-world.ts';
import type { DeviceReading } from '#controllers/device-map/reading.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T12:00:00Z';
const stored = { name: 'db', namespace: 'ns', resourceVersion: '1', creationTimestamp: NOW };
const ownerMetadata = (uid: string): ObjectMeta => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller: true }],
});

const at = (bus: string) => ({ type: 'pci', bus, slot: '0x00' });
const disk = (name: string, bus: string): LearnedDevice => ({
  id: `disk-${name}`,
  type: 'disk',
  device: 'disk',
  name,
  address: at(bus),
  managed: true,
});
const nic: LearnedDevice = {
  id: 'nic-default',
  type: 'interface',
  device: 'virtio',
  name: 'default',
  address: at('0x09'),
  managed: true,
};
const port: LearnedDevice = {
  id: 'rp0',
  type: 'controller',
  device: 'pcie-root-port',
  address: at('0x00'),
  managed: false,
};

const DEVICES: Devices = { disks: [{ name: 'root' }, { name: 'data' }] };

interface VmMore {
  readonly annotations?: Record<string, string>;
  readonly restoring?: string;
  readonly runStrategy?: RunStrategy;
  readonly requested?: 'Start';
}

function aVm(devices: Devices = DEVICES, more: VmMore = {}) {
  const { annotations, restoring, runStrategy = 'Manual', requested } = more;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...stored, uid: 'vm-uid', annotations },
    spec: { runStrategy, template: { spec: { domain: { devices } } } },
    status: {
      restoreInProgress: restoring,
      stateChangeRequests: requested === undefined ? [] : [{ action: requested }],
    },
  } as Stored<VirtualMachine>;
}

function aVmi(status: VmiStatus = {}, metadata: ObjectMeta = {}): Stored<VirtualMachineInstance> {
  const reported = { nodeName: 'node-1', machine: { type: 'pc-q35-7.2' }, deviceHash: 'h1', deviceRevision: 10 };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...stored, uid: 'vmi-1', ...ownerMetadata('vm-uid'), ...metadata },
    spec: { domain: {} },
    status: { phase: 'Running', ...reported, ...status },
  };
}

function aRecord(status?: IdentityStatus, owner = 'vm-uid'): Stored<VirtualMachineIdentity> {
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { ...stored, uid: 'record', ...ownerMetadata(owner) },
    spec: {},
    ...(status === undefined ? {} : { status }),
  };
}

function aReading(
  devices: LearnedDevice[] = [disk('root', '0x01'), port],
  more: Partial<DeviceReading> = {},
): DeviceReading {
  return { vmId: 'vmi-1', machine: 'pc-q35-7.2', hash: 'h1', revision: 10, devices, ignored: 0, ...more };
}

function aWorld(world: Partial<DeviceMapWorld> = {}): DeviceMapWorld {
  return { identity: aRecord(), vm: aVm(), vmi: aVmi(), special: [], now: NOW, ...world };
}

const statusOf = (world: Partial<DeviceMapWorld>): IdentityStatus | undefined => decideDeviceMap(aWorld(world)).status;
const FIRST = statusOf({ reading: aReading() }) as IdentityStatus;
const LATER = '2026-01-01T13:00:00Z';
const sentences = (status: IdentityStatus | undefined, from = FIRST) =>
  status?.history?.slice(from.history?.length ?? 0).flatMap(({ changes = [] }) => renderChanges(changes));

test('the first reading is recorded as it is, with its hash', () => {
  assert.deepEqual(FIRST, {
    machine: { type: 'pc-q35-7.2' },
    devices: [disk('root', '0x01'), port],
    deviceHash: 'h1',
    deviceRevision: 10,
    instance: 'vmi-1',
    learnedAt: NOW,
    recorded: {},
    history: [
      {
        at: NOW,
        what: 'first seen as pc-q35-7.2 with 2 devices',
        cause: 'the start of instance vmi-1',
        instance: 'vmi-1',
        changes: [
          { field: 'machine.type', to: 'pc-q35-7.2' },
          { field: 'devices.disk-root', to: disk('root', '0x01') },
          { field: 'devices.rp0', to: port },
        ],
      },
    ],
  });
});

const NODE_1 = { node: 'node-1', vmId: 'vmi-1' };
const importMetadata = (value: unknown) => ({ annotations: { [IMPORTED_DEVICES_ANNOTATION]: JSON.stringify(value) } });

const dues: Record<string, { world: Partial<DeviceMapWorld>; want?: typeof NODE_1 }> = {
  'a first hash is read': { world: {}, want: NODE_1 },
  'the same hash is not read': { world: { identity: aRecord(FIRST) } },
  'the same hash of another instance is not read': {
    world: { identity: aRecord({ ...FIRST, instance: 'vmi-0' }) },
  },
  'another hash is read': {
    world: { identity: aRecord(FIRST), vmi: aVmi({ deviceHash: 'h2', deviceRevision: 11 }) },
    want: NODE_1,
  },
  'an older report of the same instance is not read': {
    world: { identity: aRecord(FIRST), vmi: aVmi({ deviceHash: 'h2', deviceRevision: 9 }) },
  },
  'a lower revision of another instance is not older': {
    world: { identity: aRecord({ ...FIRST, instance: 'vmi-0' }), vmi: aVmi({ deviceHash: 'h2', deviceRevision: 9 }) },
    want: NODE_1,
  },
  'the same hash on another chipset is read': {
    world: { identity: aRecord(FIRST), vmi: aVmi({ machine: { type: 'pc-i440fx-7.2' } }) },
    want: NODE_1,
  },
  'rows without a hash are read': {
    world: { identity: aRecord({ ...FIRST, deviceHash: undefined, deviceRevision: undefined }) },
    want: NODE_1,
  },
  'an old node without a hash is not read': { world: { vmi: aVmi({ deviceHash: undefined }) } },
  'an empty hash is not read': { world: { vmi: aVmi({ deviceHash: '' }) } },
  'an instance without a node is not read': { world: { vmi: aVmi({ nodeName: undefined }) } },
  'an instance without a machine type is not read': { world: { vmi: aVmi({ machine: {} }) } },
  'an instance that does not run yet is not read': { world: { vmi: aVmi({ phase: 'Scheduled' }) } },
  'an instance that ended is not read': { world: { vmi: aVmi({ phase: 'Failed' }) } },
  'an instance under deletion whose last change is not recorded is read': {
    world: {
      identity: aRecord(FIRST),
      vmi: aVmi({ deviceHash: 'h2', deviceRevision: 11 }, { deletionTimestamp: NOW }),
    },
    want: NODE_1,
  },
  'an instance of an earlier VM is not read': { world: { vmi: aVmi({}, ownerMetadata('earlier')) } },
  'an instance without an owner is not read': { world: { vmi: aVmi({}, { ownerReferences: undefined }) } },
  'the record of an earlier VM is not read': { world: { identity: aRecord(undefined, 'earlier') } },
  'a record without a VM is not read': { world: { vm: undefined } },
  'a record without an instance is not read': { world: { vmi: undefined } },
  'a VM that is being restored is not read': { world: { vm: aVm(DEVICES, { restoring: 'back' }) } },
  'an import that is not recorded yet is not read': {
    world: { vm: aVm(DEVICES, importMetadata({ from: 'x', devices: [] })) },
  },
};
for (const [name, { world, want }] of Object.entries(dues)) {
  test(`due reading: ${name}`, () => assert.deepEqual(dueReading(aWorld(world)), want));
}

const NONE = { retryAfterMs: 700 };
const LATE = aVmi({ deviceHash: 'h2', deviceRevision: 11 });
const nothing: Record<string, Partial<DeviceMapWorld>> = {
  'a recorded reading is not written again': { identity: aRecord(FIRST), reading: aReading() },
  'an older reading of the same instance is ignored': {
    identity: aRecord(FIRST),
    reading: aReading([], { hash: 'h0', revision: 9 }),
  },
  'a reading of another instance is ignored': { identity: aRecord(FIRST), reading: aReading([], { vmId: 'vmi-0' }) },
  'a node without the VM clears nothing': { identity: aRecord(FIRST), vmi: LATE, reading: NONE },
  'an old node without a hash clears nothing': {
    identity: aRecord(FIRST),
    vmi: aVmi({ deviceHash: undefined }, { uid: 'vmi-2' }),
  },
  'an instance under deletion clears nothing if its node does not report it': {
    identity: aRecord(FIRST),
    vmi: aVmi({ deviceHash: 'h2', deviceRevision: 11 }, { deletionTimestamp: NOW }),
    reading: NONE,
  },
  'the record of an earlier VM is not changed': { identity: aRecord(undefined, 'earlier'), reading: aReading() },
  'a record that is being restored is not changed': {
    vm: aVm({}, { restoring: 'back' }),
    vmi: undefined,
    identity: aRecord(FIRST),
  },
  'a record without a VM is not changed': { vm: undefined, identity: aRecord(FIRST) },
  'a record without an instance is not changed': { vmi: undefined, identity: aRecord(FIRST) },
  'the order of the keys of an address does not matter': {
    identity: aRecord(FIRST),
    reading: aReading([{ ...disk('root', '0x01'), address: { slot: '0x00', bus: '0x01', type: 'pci' } }, port]),
  },
};
for (const [name, world] of Object.entries(nothing)) {
  test(name, () => assert.equal(statusOf(world), undefined));
}

test('a node without a current reading is read again later', () => {
  const again = (world: Partial<DeviceMapWorld>) => decideDeviceMap(aWorld(world)).requeueAfterMs;
  assert.equal(again({ reading: NONE }), NONE.retryAfterMs);
  assert.equal(again({ identity: aRecord(FIRST), vmi: LATE, reading: aReading([], { revision: 9 }) }), 10_000);
  assert.equal(again({ reading: aReading() }), undefined);
  // Newer than the record, and older than the revision in the status of the instance.
  const newest = aVmi({ deviceHash: 'h3', deviceRevision: 12 });
  const between = aReading([port], { hash: 'h2', revision: 11 });
  assert.equal(again({ identity: aRecord(FIRST), vmi: newest, reading: between }), 10_000);
  const taken = statusOf({ identity: aRecord(FIRST), vmi: newest, reading: between });
  assert.equal(again({ identity: aRecord(taken), vmi: newest, reading: between }), 10_000, 'also if it is recorded');
  assert.equal(again({ identity: aRecord(FIRST), reading: NONE }), undefined);
});

test('a reading that is newer than the status of the instance is recorded with its own hash and revision', () => {
  const status = statusOf({ identity: aRecord(FIRST), reading: aReading([port], { hash: 'h3', revision: 12 }) });
  assert.deepEqual([status?.deviceHash, status?.deviceRevision], ['h3', 12]);
  assert.equal(
    dueReading(aWorld({ identity: aRecord(status), vmi: LATE })),
    undefined,
    'an older revision is not read',
  );
});

const before: IdentityStatus = {
  machine: { type: 'pc-q35-7.1' },
  devices: [disk('root', '0x01'), disk('data', '0x02'), disk('old', '0x03'), nic, port],
  deviceHash: 'h0',
  deviceRevision: 5,
  instance: 'vmi-0',
  learnedAt: '2026-01-01T10:00:00Z',
};

test('requested devices keep their rows, others are removed, and the history lists all changes', () => {
  const after = statusOf({ identity: aRecord(before), reading: aReading([disk('root', '0x05'), disk('new', '0x06')]) });
  assert.deepEqual(
    after?.devices?.map(({ id }) => id),
    ['disk-root', 'disk-new', 'disk-data', 'nic-default', 'rp0'],
  );
  assert.deepEqual(after?.devices?.[2], disk('data', '0x02'));
  assert.deepEqual(sentences(after, before), [
    'machine type changed from pc-q35-7.1 to pc-q35-7.2',
    'disk-root moved from pci bus=0x01 slot=0x00 to pci bus=0x05 slot=0x00',
    'disk-new is new at pci bus=0x06 slot=0x00',
    'disk-old is gone from pci bus=0x03 slot=0x00',
  ]);
  const cause = 'the start of instance vmi-1';
  assert.ok(after?.history?.every((entry) => entry.cause === cause && entry.at === NOW));
});

test('a start with the recorded hash changes only the instance', () => {
  const vmi = aVmi({ machine: { type: 'pc-q35-8.0' }, deviceRevision: 3 }, { uid: 'vmi-2' });
  const status = statusOf({ identity: aRecord(FIRST), vmi, now: LATER });
  const { history, ...rest } = status ?? {};
  const { history: _, ...first } = FIRST;
  const moved = { instance: 'vmi-2', machine: { type: 'pc-q35-8.0' }, deviceRevision: 3, learnedAt: LATER };
  assert.deepEqual(rest, { ...first, ...moved });
  assert.deepEqual(history?.slice(1), [
    {
      at: LATER,
      what: 'machine type changed from pc-q35-7.2 to pc-q35-8.0',
      cause: 'the start of instance vmi-2',
      instance: 'vmi-2',
      changes: [{ field: 'machine.type', from: 'pc-q35-7.2', to: 'pc-q35-8.0' }],
    },
  ]);
});

test('a change while the guest runs is recorded as such', () => {
  const reading = aReading([disk('root', '0x01'), port, disk('data', '0x02')], { hash: 'h2', revision: 11 });
  const status = statusOf({ identity: aRecord(FIRST), vmi: LATE, reading });
  assert.deepEqual(status?.history?.at(-1), {
    at: NOW,
    what: 'disk-data is new at pci bus=0x02 slot=0x00',
    cause: 'a change while it ran',
    changes: [{ field: 'devices.disk-data', to: disk('data', '0x02') }],
  });
});

test('a disk that was added just before the end of the instance keeps its address at the next start', () => {
  const vmi = aVmi({ deviceHash: 'h2', deviceRevision: 11 }, { deletionTimestamp: NOW });
  const reading = aReading([disk('root', '0x01'), port, disk('data', '0x04')], { hash: 'h2', revision: 11 });
  const status = statusOf({ identity: aRecord(FIRST), vmi, reading });
  assert.deepEqual(status?.devices?.at(-1), disk('data', '0x04'));
});

test('a change of chipset drops every address, also of devices that are not reported, and is recorded', () => {
  const vmi = aVmi({ machine: { type: 'pc-i440fx-7.2' } }, { uid: 'vmi-2' });
  const reading = aReading([{ ...disk('root', '0x00'), address: undefined }], {
    vmId: 'vmi-2',
    machine: 'pc-i440fx-7.2',
  });
  const status = statusOf({ identity: aRecord(before), vmi, reading });
  assert.deepEqual(
    status?.devices?.map(({ id, address }) => [id, address]),
    [
      ['disk-root', undefined],
      ['disk-data', undefined],
      ['nic-default', undefined],
    ],
  );
  assert.ok(sentences(status, before)?.includes('chipset changed from q35 to i440fx: no device keeps its address'));
});

const LAN = { interfaces: [{ name: 'default', masquerade: {} }] };
const ABSENT = { interfaces: [{ name: 'default', masquerade: {}, state: 'absent' as const }] };
const RAN: IdentityStatus = { ...FIRST, devices: [disk('root', '0x01'), nic, port] };
const UNPLUGGED_NIC = { ...nic, plugged: false };

test('changes of the template are recorded while the node does not respond', () => {
  const vm = aVm({ ...DEVICES, ...ABSENT });
  const plan = decideDeviceMap(aWorld({ identity: aRecord(RAN), vm, vmi: LATE, reading: NONE }));
  assert.deepEqual((plan.status as IdentityStatus).devices?.[1], UNPLUGGED_NIC);
  assert.equal(plan.requeueAfterMs, NONE.retryAfterMs);
});

test('an interface is unplugged in the record before the guest is asked, and returns to its address', () => {
  const vm = aVm({ ...DEVICES, ...ABSENT });
  const unplugged = statusOf({ identity: aRecord(RAN), vm, now: LATER });
  assert.deepEqual(unplugged?.devices?.[1], UNPLUGGED_NIC);
  assert.deepEqual(
    [unplugged?.deviceHash, unplugged?.instance, unplugged?.learnedAt],
    ['h1', 'vmi-1', NOW],
    'hash, instance and time do not change',
  );
  assert.deepEqual(sentences(unplugged), ['nic-default is unplugged and keeps its address']);
  const reading = aReading([disk('root', '0x01'), port], { hash: 'h2', revision: 11 });
  const released = statusOf({ identity: aRecord(unplugged), vm, vmi: LATE, reading });
  assert.deepEqual(released?.devices?.at(-1), UNPLUGGED_NIC);
  const back = statusOf({ identity: aRecord(released), vm: aVm({ ...DEVICES, ...LAN }), vmi: LATE });
  assert.deepEqual(back?.devices?.at(-1), nic);
  assert.deepEqual(sentences(back, released), ['nic-default is plugged in']);
});

test('without a guest interfaces keep their address, disks release it, and detached devices are removed', () => {
  const devices = { disks: [{ name: 'root', plugged: false }], ...ABSENT };
  const ended = aVmi({ phase: 'Succeeded' });
  for (const vmi of [undefined, ended]) {
    const status = statusOf({
      identity: aRecord({ ...before, devices: [...(before.devices ?? [])] }),
      vm: aVm(devices),
      vmi,
    });
    const { address: _, ...root } = disk('root', '0x01');
    assert.deepEqual(status?.devices, [{ ...root, plugged: false }, UNPLUGGED_NIC, port]);
    assert.deepEqual(sentences(status, before), [
      'disk-root is unplugged; pci bus=0x01 slot=0x00 is released',
      'nic-default is unplugged and keeps its address',
      'disk-data is gone from pci bus=0x02 slot=0x00',
      'disk-old is gone from pci bus=0x03 slot=0x00',
    ]);
    assert.ok(!('deviceHash' in (status ?? {})), 'the hash of removed rows is dropped');
  }
});

test('no row is removed while there is an instance, which may use its address', () => {
  const vm = aVm({ disks: [] });
  for (const phase of ['Pending', 'Scheduled', 'Running', 'Unknown'] as const) {
    const world = aWorld({ identity: aRecord(FIRST), vm, vmi: aVmi({ phase }) });
    assert.equal(decideDeviceMap(world).status, undefined, phase);
    assert.equal(losesAddressesWhenStopped(world), false);
  }
  const losesRow = (more: VmMore) =>
    losesAddressesWhenStopped(aWorld({ identity: aRecord(FIRST), vm: aVm({ disks: [] }, more), vmi: undefined }));
  assert.deepEqual([losesRow({}), losesRow({ runStrategy: 'Halted' })], [true, true]);
  assert.equal(losesRow({ runStrategy: 'Always' }), false, 'the next instance is about to be created');
  assert.equal(losesRow({ requested: 'Start' }), false);
  assert.equal(losesAddressesWhenStopped(aWorld({ identity: aRecord(FIRST), vmi: undefined })), false);
});

test('the default interface is removed when the template has others', () => {
  const vm = aVm({ disks: [], interfaces: [{ name: 'lan' }] });
  const status = statusOf({ vm, identity: aRecord(before), reading: aReading() });
  assert.ok(!status?.devices?.some(({ id }) => id === 'nic-default'));
});

test('an import gives the initial devices, once', () => {
  const from = { from: 'OVF of oVirt 4.1', machine: 'pc-i440fx-2.9', devices: [disk('root', '0x07')] };
  const vm = aVm(DEVICES, importMetadata(from));
  const status = statusOf({ vm, vmi: undefined });
  assert.deepEqual(status, {
    machine: { type: 'pc-i440fx-2.9' },
    devices: [disk('root', '0x07')],
    recorded: {},
    history: [
      {
        at: NOW,
        what: 'imported from OVF of oVirt 4.1 with 1 devices',
        cause: 'the import of the VM',
        changes: [
          { field: 'machine.type', to: 'pc-i440fx-2.9' },
          { field: 'devices.disk-root', to: disk('root', '0x07') },
        ],
      },
    ],
  });
  assert.equal(statusOf({ vm, vmi: undefined, identity: aRecord(status) }), undefined);
});

test('the history lists the ports that the first start of an import without ports adds', () => {
  const vm = aVm(DEVICES, importMetadata({ from: 'x', machine: 'pc-q35-7.2', devices: [disk('root', '0x01')] }));
  const imported = statusOf({ vm, vmi: undefined }) as IdentityStatus;
  const started = statusOf({ vm, identity: aRecord(imported), reading: aReading() });
  const added = started?.history?.slice(imported.history?.length).flatMap(({ changes = [] }) => changes);
  assert.deepEqual(added, [{ field: 'devices.rp0', to: port }]);
});

test('an invalid import is reported, and nothing of it is recorded', () => {
  const plan = decideDeviceMap(aWorld({ vm: aVm(DEVICES, importMetadata('rows')), vmi: undefined }));
  assert.deepEqual(plan.status, { recorded: {} });
  assert.equal(plan.events?.[0]?.reason, 'FaultyImport');
});

test('the history keeps the newest entries', () => {
  const history = Array.from({ length: MAX_HISTORY }, (_, n) => ({ at: NOW, what: `${n}`, cause: 'x' }));
  const vmi = aVmi({ machine: { type: 'pc-q35-8.0' } });
  const status = statusOf({ identity: aRecord({ ...FIRST, history }), vmi });
  assert.equal(status?.history?.length, MAX_HISTORY);
  assert.equal(status?.history?.[0]?.what, '1');
  assert.match(status?.history?.at(-1)?.what ?? '', /^machine type changed/);
});

test('one start does not displace everything else in the history', () => {
  const disks = Array.from({ length: 40 }, (_, n) => disk(`d${n}`, `0x${n}`));
  const status = statusOf({
    identity: aRecord(FIRST),
    vmi: LATE,
    reading: aReading(disks, { hash: 'h2', revision: 11 }),
  });
  assert.equal(status?.history?.length, (FIRST.history?.length ?? 0) + 1);
  assert.match(status?.history?.at(-1)?.what ?? '', /; 30 more changes$/);
  assert.equal(status?.history?.at(-1)?.changes?.length, 40);
});

const PORTS = [{ type: 'controller', device: 'pcie-root-port' }];
const special: LearnedDevice = { ...port, managed: true, specialManaged: true };
const LISTED: IdentityStatus = { ...FIRST, devices: [disk('root', '0x01'), special] };
const atRest = { vm: aVm({ disks: [{ name: 'root' }] }, { runStrategy: 'Halted' }), vmi: undefined };

const listCases: Record<string, { given: Partial<DeviceMapWorld>; want: LearnedDevice; sentence: string }> = {
  'a device that becomes listed is managed at the next reconcile while the guest runs': {
    given: { identity: aRecord(FIRST), special: PORTS },
    want: special,
    sentence: 'rp0 is managed now: specialManagedDevices lists it',
  },
  'a device that becomes listed is managed at the next reconcile while the VM is stopped': {
    given: { identity: aRecord(FIRST), special: PORTS, ...atRest },
    want: special,
    sentence: 'rp0 is managed now: specialManagedDevices lists it',
  },
  'a device that is no longer listed is unmanaged at the next reconcile while the guest runs': {
    given: { identity: aRecord(LISTED) },
    want: port,
    sentence: 'rp0 is no longer managed: specialManagedDevices does not list it',
  },
  'a device that is no longer listed is unmanaged at the next reconcile while the VM is stopped': {
    given: { identity: aRecord(LISTED), ...atRest },
    want: port,
    sentence: 'rp0 is no longer managed: specialManagedDevices does not list it',
  },
  'a reading uses the new list, and the history has the cause': {
    given: {
      identity: aRecord(FIRST),
      special: PORTS,
      vmi: aVmi({ deviceHash: 'h2', deviceRevision: 11 }),
      reading: aReading([disk('root', '0x01'), port], { hash: 'h2', revision: 11 }),
    },
    want: special,
    sentence: 'rp0 is managed now: specialManagedDevices lists it',
  },
};

for (const [name, { given, want, sentence }] of Object.entries(listCases)) {
  test(name, () => {
    const world = aWorld({ ...given, now: LATER });
    if (world.reading === undefined) assert.equal(dueReading(world), undefined);
    const status = decideDeviceMap(world).status as IdentityStatus;
    assert.deepEqual(
      status.devices?.find(({ id }) => id === 'rp0'),
      want,
    );
    assert.deepEqual(sentences(status), [sentence]);
    assert.equal(status.history?.at(-1)?.cause, 'a change of specialManagedDevices');
  });
}

test('a list that changes no classification writes nothing', () => {
  assert.deepEqual(decideDeviceMap(aWorld({ identity: aRecord(LISTED), special: PORTS })).status, undefined);
});
