import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/legacy-uuid.ts';
import { IMPORTED_DEVICES_ANNOTATION, VM_FINALIZER, VMI_FINALIZER } from '#api/names.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED, NOW_MS } from '#controllers/vm/vm-world.fixture.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { conflict } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change } from '#runtime/plan.ts';

const shown = (change: Change): string => `${change.do} ${change.type.kind}`;

interface Case {
  readonly world: Partial<VmWorld>;
  readonly want: string[];
  /** Whether the status is told in the same plan. */
  readonly status?: boolean;
}

const anOrphan = (metadata: ObjectMeta = {}) => aVmi('Running', { metadata: { ownerReferences: [], ...metadata } });
const lock = { kind: 'snapshot', name: 'nightly' } as const;
const FRESH = { finalizers: undefined };
const imported = aVm({ metadata: { annotations: { [IMPORTED_DEVICES_ANNOTATION]: '{"from":"OVF","devices":[]}' } } });
const disputed: Stored<PersistentVolumeClaim> = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    ...{ namespace: 'ns', name: 'a', uid: 'a-uid', resourceVersion: '1', creationTimestamp: timestamp(NOW_MS) },
    labels: { 'persistent-state-for': 'db' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'backup', uid: 'x' }],
  },
  spec: {},
};
const bare = aVm({ metadata: FRESH, template: { domain: {} } });

const cases: Record<string, Case> = {
  'a start first holds the VM, gives it a machine type and records who it is': {
    world: { vm: bare, identity: undefined },
    want: ['patch VirtualMachine', 'create VirtualMachineIdentity'],
    status: false,
  },
  'a start that lost its record write records again': {
    world: { identity: undefined },
    want: ['create VirtualMachineIdentity'],
    status: false,
  },
  'a start makes the instance last': { world: {}, want: ['create VirtualMachineInstance'], status: false },
  'a VM that nobody starts is not touched': {
    world: { vm: aVm({ runStrategy: 'Halted', metadata: FRESH }), identity: undefined },
    want: [],
  },
  'an instance that is there is left alone': { world: { vmi: aVmi('Running') }, want: [] },
  'a record that somebody deleted is made again': {
    world: { vmi: aVmi('Running'), identity: undefined },
    want: ['create VirtualMachineIdentity'],
  },
  'a record that has lost its owner is the VM’s own again': {
    world: { vmi: aVmi('Running'), identity: aRecord(aVm(), { ownerReferences: undefined }) },
    want: ['patch VirtualMachineIdentity'],
  },
  'but not while somebody holds the VM': {
    world: { vmi: aVmi('Running'), identity: aRecord(aVm(), { ownerReferences: undefined }), lock },
    want: [],
  },
  'nor one of another VM': {
    world: {
      vmi: aVmi('Running'),
      identity: aRecord(aVm({ metadata: { uid: 'other' } })),
    },
    want: [],
  },
  'a record is not made for an instance that goes': {
    world: { vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: [] } }), identity: undefined },
    want: [],
  },
  'a finished instance goes before another comes': {
    world: { vmi: aVmi('Failed') },
    want: ['delete VirtualMachineInstance'],
  },
  'an instance that goes is let go': {
    world: { vmi: aVmi('Running', { metadata: DELETED }) },
    want: ['patch VirtualMachineInstance'],
  },
  'an instance that was let go is waited for': {
    world: { vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: ['another'] } }) },
    want: [],
  },
  'a paused start of a halted VM makes it run always': {
    world: { vm: aVm({ runStrategy: 'Halted', status: { stateChangeRequests: [{ action: 'Start' }] } }) },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'a deleted VM stops its instance': {
    world: { vm: aVm({ metadata: DELETED }), vmi: aVmi('Running') },
    want: ['delete VirtualMachineInstance'],
  },
  'a deleted VM waits for its instance': {
    world: { vm: aVm({ metadata: DELETED }), vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: [] } }) },
    want: [],
  },
  'a deleted VM starts nothing': {
    world: { vm: aVm({ metadata: DELETED }) },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'a deleted VM that leaves its instance behind does not touch it': {
    world: { vm: aVm({ metadata: { ...DELETED, finalizers: ['orphan', VM_FINALIZER] } }), vmi: aVmi('Running') },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'an instance that an earlier VM left behind is adopted': {
    world: { stranger: anOrphan(), mayAdopt: true },
    want: ['patch VirtualMachineInstance'],
    status: false,
  },
  'by a VM that is held first': {
    world: { vm: bare, stranger: anOrphan(), mayAdopt: true },
    want: ['patch VirtualMachine', 'patch VirtualMachineInstance'],
    status: false,
  },
  'nor by a VM that somebody holds': { world: { stranger: anOrphan(), mayAdopt: true, lock }, want: [] },
  'but not by a VM that is gone already': { world: { stranger: anOrphan(), mayAdopt: false }, want: [] },
  'nor one that people made themselves': {
    world: { stranger: anOrphan({ finalizers: [VMI_FINALIZER] }), mayAdopt: true },
    want: [],
  },
  'nor one that another VM has': { world: { stranger: aVmi('Running'), mayAdopt: true }, want: [] },
  'nor by a VM that is to go': {
    world: { vm: aVm({ metadata: DELETED }), stranger: anOrphan(), mayAdopt: true },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'an instance of somebody else is not touched': { world: { stranger: aVmi('Failed') }, want: [] },
  'a deleted VM does not wait for an instance of somebody else': {
    world: { vm: aVm({ metadata: DELETED }), stranger: aVmi('Running') },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'a VM is not started while somebody else has the claim of its state': {
    world: { stateConflicts: [disputed] },
    want: [],
  },
  'nor prepared for a start while somebody else has the claim of its state': {
    world: { stateConflicts: [disputed], vm: aVm({ metadata: FRESH }), identity: undefined },
    want: [],
  },
  'a VM that runs is left alone, whoever has the claim of its state': {
    world: { stateConflicts: [disputed], vmi: aVmi('Running') },
    want: [],
  },
  'a VM that somebody holds is not started': { world: { lock }, want: [] },
  'nor prepared for it': { world: { lock, vm: aVm({ metadata: FRESH }), identity: undefined }, want: [] },
  'nor woken': {
    world: { lock, vm: aVm({ runStrategy: 'Halted', status: { stateChangeRequests: [{ action: 'Start' }] } }) },
    want: [],
  },
  'it is still stopped': {
    world: { lock, vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Running') },
    want: ['delete VirtualMachineInstance'],
  },
  'and let go': { world: { lock, vm: aVm({ metadata: DELETED }) }, want: ['patch VirtualMachine'], status: false },
  'a start of an import records who the VM is first': {
    world: { vm: imported, identity: undefined },
    want: ['create VirtualMachineIdentity'],
    status: false,
  },
  'and waits until its devices are on record': { world: { vm: imported, identity: aRecord(imported) }, want: [] },
  'and starts then': {
    world: { vm: imported, identity: { ...aRecord(imported), status: { devices: [] } } },
    want: ['create VirtualMachineInstance'],
    status: false,
  },
  'the record of an earlier VM keeps a start back': {
    world: { identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
    want: [],
  },
};

for (const [name, { world, want, status = true }] of Object.entries(cases)) {
  test(name, () => {
    const plan = decideVm(aWorld(world));
    assert.deepEqual(plan.changes.map(shown), want);
    assert.equal(plan.status !== undefined, status);
  });
}

test('machine type and firmware uuid are written with the finalizer, on the state that was seen', () => {
  const [change] = decideVm(aWorld({ vm: bare, identity: undefined })).changes;
  assert.ok(change?.do === 'patch');
  assert.deepEqual(change.patch.body, {
    metadata: { resourceVersion: '1', finalizers: [VM_FINALIZER] },
    spec: { template: { spec: { domain: { machine: { type: 'q35' }, firmware: { uuid: legacyUuid('db') } } } } },
  });
});

test('a start that is put off is looked at again when it is due', () => {
  const retryAfterTimestamp = timestamp(NOW_MS + 7000);
  const vm = aVm({ status: { startFailure: { consecutiveFailCount: 1, retryAfterTimestamp } } });
  const plan = decideVm(aWorld({ vm }));
  assert.deepEqual(plan.changes, []);
  assert.equal(plan.requeueAfterMs, 7000);
});

test('a failure under RerunOnFailure is written down with the delete', () => {
  const vm = aVm({ runStrategy: 'RerunOnFailure' });
  const { status } = decideVm(aWorld({ vm, vmi: aVmi('Failed', { vm }) }));
  assert.deepEqual(status?.['stateChangeRequests'], [{ action: 'Start' }]);
});

test('what keeps a VM from running is told in an Event, once', () => {
  const stranger = aVmi('Running', { metadata: { ownerReferences: [] } });
  const { events, status } = decideVm(aWorld({ stranger }));
  assert.deepEqual(
    events?.map(({ type, reason }) => `${type} ${reason}`),
    ['Warning FailedCreate'],
  );
  assert.deepEqual(decideVm(aWorld({ stranger, vm: aVm({ status: status as VmStatus }) })).events, []);
});

test('a claim of its state that somebody else has is named in a condition and an Event, once', () => {
  const stateConflicts = [disputed];
  const { events, status } = decideVm(aWorld({ stateConflicts }));
  const [event, ...more] = events ?? [];
  assert.deepEqual([event?.type, event?.reason, more], ['Warning', 'PersistentStateConflict', []]);
  const failure = findCondition((status as VmStatus).conditions, 'Failure');
  assert.deepEqual([failure?.status, failure?.message], ['True', event?.message]);
  assert.match(failure?.message ?? '', /"a" is marked as its persistent state, but belongs to ConfigMap "backup"; /);
  assert.deepEqual(decideVm(aWorld({ stateConflicts, vm: aVm({ status: status as VmStatus }) })).events, []);
});

test('all of a start is told when it fails', () => {
  assert.equal(decideVm(aWorld({ vm: bare, identity: undefined })).goOn, true);
  assert.equal(decideVm(aWorld()).goOn, true);
});

test('an instance that cannot be made is told; one that was only looked at too late is not', () => {
  const change = { do: 'create', type: VIRTUAL_MACHINE_INSTANCES, object: aVmi('Running'), why: 'x' } as const;
  const world = aWorld();
  const status = concludeVm(world, [{ change, error: new Error('no room') }]);
  const conditions = (status?.['conditions'] ?? []) as { type: string; message?: string }[];
  const failure = conditions.find(({ type }) => type === 'Failure');
  assert.equal(failure?.message, 'Failure while starting VMI: no room');
  assert.equal(concludeVm(world, []), undefined);
  const stale = conflict(VIRTUAL_MACHINE_INSTANCES, 'db', 'the object of that name is still being deleted');
  assert.equal(concludeVm(world, [{ change, error: stale }]), undefined);
});
