import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { type IdentityStatus, MAX_HISTORY, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideDeviceMap, type DeviceMapWorld } from '#controllers/device-map/decide-device-map.ts';
import type { Devices } from '#api/domain/devices.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T12:00:00Z';
const stored = { name: 'db', namespace: 'ns', resourceVersion: '1', creationTimestamp: NOW };
const owned = (uid: string): ObjectMeta => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller: true }],
});

const at = (bus: string) => ({ type: 'pci', bus, slot: '0x00' });
const disk = (name: string, bus: string): LearnedDevice => ({
  id: `disk-${name}`,
  type: 'disk',
  device: 'disk',
  name,
  address: at(bus),
});
const rng: LearnedDevice = { id: 'rng0', type: 'rng', device: 'virtio', address: at('0x00') };
const nic: LearnedDevice = {
  id: 'nic-default',
  type: 'interface',
  device: 'virtio',
  name: 'default',
  address: at('0x09'),
};

function aVm(devices: Devices = { disks: [{ name: 'root' }, { name: 'data' }] }): Stored<VirtualMachine> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...stored, uid: 'vm-uid' },
    spec: { template: { spec: { domain: { devices } } } },
  };
}

function aVmi(status: VmiStatus = {}, metadata: ObjectMeta = {}): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...stored, uid: 'vmi-1', ...owned('vm-uid'), ...metadata },
    spec: { domain: {} },
    status: { phase: 'Running', machine: { type: 'pc-q35-7.2' }, devices: [disk('root', '0x01'), rng], ...status },
  };
}

function aRecord(status?: IdentityStatus, owner = 'vm-uid'): Stored<VirtualMachineIdentity> {
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { ...stored, uid: 'record', ...owned(owner) },
    spec: {},
    ...(status === undefined ? {} : { status }),
  };
}

function learn(world: Partial<DeviceMapWorld> = {}): IdentityStatus | undefined {
  const { status } = decideDeviceMap({ identity: aRecord(), vm: aVm(), vmi: aVmi(), now: NOW, ...world });
  return status;
}

const FIRST = learn() as IdentityStatus;

test('the first report is taken as it is', () => {
  assert.deepEqual(FIRST, {
    machine: { type: 'pc-q35-7.2' },
    devices: [disk('root', '0x01'), rng],
    instance: 'vmi-1',
    learnedAt: NOW,
    history: [{ at: NOW, what: 'first seen as pc-q35-7.2 with 2 devices', cause: 'the start of instance vmi-1' }],
  });
});

const ignored: Record<string, Partial<DeviceMapWorld>> = {
  'a report that was taken is not written again': { identity: aRecord(FIRST) },
  'an instance that does not run yet says nothing': { vmi: aVmi({ phase: 'Scheduled' }) },
  'an instance that ended says nothing': { vmi: aVmi({ phase: 'Failed' }) },
  'an instance on its way out says nothing': { vmi: aVmi({}, { deletionTimestamp: NOW }) },
  'an instance without a report says nothing': { vmi: aVmi({ devices: undefined }) },
  'an instance without a machine type says nothing': { vmi: aVmi({ machine: {} }) },
  'an instance of an earlier VM says nothing': { vmi: aVmi({}, owned('earlier')) },
  'an instance of nobody says nothing': { vmi: aVmi({}, { ownerReferences: undefined }) },
  'the record of an earlier VM learns nothing': { identity: aRecord(undefined, 'earlier') },
  'no VM, no learning': { vm: undefined },
  'no instance, no learning': { vmi: undefined, identity: aRecord(FIRST) },
};

for (const [name, world] of Object.entries(ignored)) {
  test(name, () => assert.equal(learn(world), undefined));
}

const before: IdentityStatus = {
  machine: { type: 'pc-q35-7.1' },
  devices: [disk('root', '0x01'), disk('data', '0x02'), disk('old', '0x03'), nic, rng],
  instance: 'vmi-0',
  learnedAt: '2026-01-01T10:00:00Z',
};

test('what the template still names keeps its row, what it does not goes, and the history says all that changed', () => {
  const vmi = aVmi({ devices: [disk('root', '0x05'), disk('new', '0x06')] });
  const cause = 'the start of instance vmi-1';
  const after = learn({ identity: aRecord(before), vmi });
  assert.deepEqual(
    after?.devices?.map(({ id }) => id),
    ['disk-root', 'disk-new', 'disk-data', 'nic-default'],
  );
  assert.deepEqual(after?.devices?.[2], disk('data', '0x02'));
  assert.deepEqual(
    after?.history?.map((entry) => entry.what),
    [
      'machine type changed from pc-q35-7.1 to pc-q35-7.2',
      'disk-root moved from bus=0x01,slot=0x00,type=pci to bus=0x05,slot=0x00,type=pci',
      'disk-new is new at bus=0x06,slot=0x00,type=pci',
      'disk-old is gone from bus=0x03,slot=0x00,type=pci',
      'rng0 is gone from bus=0x00,slot=0x00,type=pci',
    ],
  );
  assert.ok(after?.history?.every((entry) => entry.cause === cause && entry.at === NOW));
});

test('the default interface goes when the template names others', () => {
  const vm = aVm({ disks: [], interfaces: [{ name: 'lan' }] });
  assert.ok(!learn({ vm, identity: aRecord(before) })?.devices?.some(({ id }) => id === 'nic-default'));
});

test('a start that changes nothing is learned without a history', () => {
  const status = learn({ identity: aRecord(FIRST), vmi: aVmi({}, { uid: 'vmi-2' }) });
  assert.equal(status?.instance, 'vmi-2');
  assert.deepEqual(status?.history, FIRST.history);
});

test('a change while it runs is told as one', () => {
  const vmi = aVmi({ devices: [disk('root', '0x01'), rng, disk('data', '0x02')] });
  const status = learn({ identity: aRecord(FIRST), vmi });
  assert.equal(status?.history?.at(-1)?.cause, 'a change while it ran');
});

test('the order of the keys of an address says nothing', () => {
  const vmi = aVmi({
    devices: [{ ...disk('root', '0x01'), address: { slot: '0x00', bus: '0x01', type: 'pci' } }, rng],
  });
  assert.equal(learn({ identity: aRecord(FIRST), vmi }), undefined);
});

test('the history keeps the newest entries', () => {
  const history = Array.from({ length: MAX_HISTORY }, (_, n) => ({ at: NOW, what: `${n}`, cause: 'x' }));
  const status = learn({ identity: aRecord({ ...FIRST, history }), vmi: aVmi({ machine: { type: 'pc-q35-8.0' } }) });
  assert.equal(status?.history?.length, MAX_HISTORY);
  assert.equal(status?.history?.[0]?.what, '1');
  assert.match(status?.history?.at(-1)?.what ?? '', /^machine type changed/);
});
