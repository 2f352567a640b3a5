import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { IMPORTED_DEVICES_ANNOTATION, VM_FINALIZER, VMI_FINALIZER } from '#api/names.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED, NOW_MS } from '#controllers/vm/testing/vm-world.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { conflict } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change } from '#runtime/plan.ts';

const describeChange = (change: Change): string => `${change.do} ${change.type.kind}`;

interface Case {
  readonly world: Partial<VmWorld>;
  readonly want: string[];
  /** True if the plan contains the status. */
  readonly status?: boolean;
}

const anOrphan = (metadata: ObjectMeta = {}) => aVmi('Running', { metadata: { ownerReferences: [], ...metadata } });
const lock = { kind: 'snapshot', name: 'nightly' } as const;
const FRESH = { finalizers: undefined };
const imported = aVm({ metadata: { annotations: { [IMPORTED_DEVICES_ANNOTATION]: '{"from":"OVF","devices":[]}' } } });
const haltedImport = (devices: string) =>
  aVm({ runStrategy: 'Halted', metadata: { annotations: { [IMPORTED_DEVICES_ANNOTATION]: devices } } });
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
const halted = aVm({ runStrategy: 'Halted' });
const bare = aVm({ metadata: FRESH, template: { domain: {} } });

const cases: Record<string, Case> = {
  'a start first adds the finalizer and a machine type and records the identity': {
    world: { vm: bare, identity: undefined },
    want: ['patch VirtualMachine', 'create VirtualMachineIdentity'],
    status: false,
  },
  'a start whose record was not written records the identity again': {
    world: { identity: undefined },
    want: ['create VirtualMachineIdentity'],
    status: false,
  },
  'a start creates the instance last': { world: {}, want: ['create VirtualMachineInstance'], status: false },
  'a VM that is not to start is not changed': {
    world: { vm: aVm({ runStrategy: 'Halted', metadata: FRESH }), identity: undefined },
    want: [],
  },
  'a running instance is left alone': { world: { vmi: aVmi('Running') }, want: [] },
  'a deleted record is created again': {
    world: { vmi: aVmi('Running'), identity: undefined },
    want: ['create VirtualMachineIdentity'],
  },
  'a record that lost its owner is adopted again': {
    world: { vmi: aVmi('Running'), identity: aRecord(aVm(), { ownerReferences: undefined }) },
    want: ['patch VirtualMachineIdentity'],
  },
  'a record is not adopted while a snapshot holds the VM': {
    world: { vmi: aVmi('Running'), identity: aRecord(aVm(), { ownerReferences: undefined }), lock },
    want: [],
  },
  'the record of a halted copy gets its uuid before the first start': {
    world: { vm: halted, identity: { ...aRecord(halted), spec: {} } },
    want: ['patch VirtualMachineIdentity'],
  },
  'the record of a copy is left to the restore that holds the copy': {
    world: { vm: halted, identity: { ...aRecord(halted), spec: {} }, lock },
    want: [],
  },
  'an imported VM gets its record before the first start': {
    world: { vm: haltedImport('{"from":"OVF","devices":[]}'), identity: undefined },
    want: ['create VirtualMachineIdentity'],
  },
  'an imported VM with unreadable devices gets no record': {
    world: { vm: haltedImport('{}'), identity: undefined },
    want: [],
  },
  'the record of an imported VM is left to the restore that holds the VM': {
    world: { vm: haltedImport('{"from":"OVF","devices":[]}'), identity: undefined, lock },
    want: [],
  },
  'a complete record of a halted VM is left alone': { world: { vm: halted }, want: [] },
  'a record of another VM is not adopted': {
    world: {
      vmi: aVmi('Running'),
      identity: aRecord(aVm({ metadata: { uid: 'other' } })),
    },
    want: [],
  },
  'no record is created for an instance under deletion': {
    world: { vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: [] } }), identity: undefined },
    want: [],
  },
  'a finished instance is deleted before another is created': {
    world: { vmi: aVmi('Failed') },
    want: ['delete VirtualMachineInstance'],
  },
  'an instance under deletion is released': {
    world: { vmi: aVmi('Running', { metadata: DELETED }) },
    want: ['patch VirtualMachineInstance'],
  },
  'the VM waits for an instance that was released': {
    world: { vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: ['another'] } }) },
    want: [],
  },
  'a paused start changes a halted VM to Always': {
    world: { vm: aVm({ runStrategy: 'Halted', status: { stateChangeRequests: [{ action: 'Start' }] } }) },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'a VM under deletion stops its instance': {
    world: { vm: aVm({ metadata: DELETED }), vmi: aVmi('Running') },
    want: ['delete VirtualMachineInstance'],
  },
  'a VM under deletion waits for its instance': {
    world: { vm: aVm({ metadata: DELETED }), vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: [] } }) },
    want: [],
  },
  'a VM under deletion starts nothing': {
    world: { vm: aVm({ metadata: DELETED }) },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'a VM that is deleted with orphan does not change its instance': {
    world: { vm: aVm({ metadata: { ...DELETED, finalizers: ['orphan', VM_FINALIZER] } }), vmi: aVmi('Running') },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'an orphaned instance of an earlier VM is adopted': {
    world: { foreignVmi: anOrphan(), mayAdopt: true },
    want: ['patch VirtualMachineInstance'],
    status: false,
  },
  'an adopting VM first gets its finalizer': {
    world: { vm: bare, foreignVmi: anOrphan(), mayAdopt: true },
    want: ['patch VirtualMachine', 'patch VirtualMachineInstance'],
    status: false,
  },
  'an instance is not adopted while a snapshot holds the VM': {
    world: { foreignVmi: anOrphan(), mayAdopt: true, lock },
    want: [],
  },
  'an instance is not adopted by a VM that is already gone': {
    world: { foreignVmi: anOrphan(), mayAdopt: false },
    want: [],
  },
  'an instance that a user created is not adopted': {
    world: { foreignVmi: anOrphan({ finalizers: [VMI_FINALIZER] }), mayAdopt: true },
    want: [],
  },
  'an instance of another VM is not adopted': { world: { foreignVmi: aVmi('Running'), mayAdopt: true }, want: [] },
  'an instance is not adopted by a VM under deletion': {
    world: { vm: aVm({ metadata: DELETED }), foreignVmi: anOrphan(), mayAdopt: true },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'an instance of another owner is not changed': { world: { foreignVmi: aVmi('Failed') }, want: [] },
  'a VM under deletion does not wait for an instance of another owner': {
    world: { vm: aVm({ metadata: DELETED }), foreignVmi: aVmi('Running') },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'a VM does not start while its state claim has another owner': {
    world: { stateConflicts: [disputed] },
    want: [],
  },
  'a VM is not prepared for a start while its state claim has another owner': {
    world: { stateConflicts: [disputed], vm: aVm({ metadata: FRESH }), identity: undefined },
    want: [],
  },
  'a running VM is left alone if its state claim has another owner': {
    world: { stateConflicts: [disputed], vmi: aVmi('Running') },
    want: [],
  },
  'a VM that a snapshot holds is not started': { world: { lock }, want: [] },
  'a VM that a snapshot holds is not prepared for a start': {
    world: { lock, vm: aVm({ metadata: FRESH }), identity: undefined },
    want: [],
  },
  'a halted VM that a snapshot holds is not set to Always': {
    world: { lock, vm: aVm({ runStrategy: 'Halted', status: { stateChangeRequests: [{ action: 'Start' }] } }) },
    want: [],
  },
  'a VM that a snapshot holds is stopped': {
    world: { lock, vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Running') },
    want: ['delete VirtualMachineInstance'],
  },
  'a VM under deletion is released although a snapshot holds it': {
    world: { lock, vm: aVm({ metadata: DELETED }) },
    want: ['patch VirtualMachine'],
    status: false,
  },
  'the start of an imported VM records its identity first': {
    world: { vm: imported, identity: undefined },
    want: ['create VirtualMachineIdentity'],
    status: false,
  },
  'the start of an imported VM waits until its devices are recorded': {
    world: { vm: imported, identity: aRecord(imported) },
    want: [],
  },
  'an imported VM starts when its devices are recorded': {
    world: { vm: imported, identity: { ...aRecord(imported), status: { devices: [] } } },
    want: ['create VirtualMachineInstance'],
    status: false,
  },
  'the record of an earlier VM prevents a start': {
    world: { identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
    want: [],
  },
};

for (const [name, { world, want, status = true }] of Object.entries(cases)) {
  test(name, () => {
    const plan = decideVm(aWorld(world));
    assert.deepEqual(plan.changes.map(describeChange), want);
    assert.equal(plan.status !== undefined, status);
  });
}

test('machine type and firmware uuid are written with the finalizer, on the observed version', () => {
  const [change] = decideVm(aWorld({ vm: bare, identity: undefined })).changes;
  assert.ok(change?.do === 'patch');
  assert.deepEqual(change.patch.body, {
    metadata: { resourceVersion: '1', finalizers: [VM_FINALIZER] },
    spec: { template: { spec: { domain: { machine: { type: 'q35' }, firmware: { uuid: legacyUuid('db') } } } } },
  });
});

test('a delayed start is reconsidered when it is due', () => {
  const retryAfterTimestamp = timestamp(NOW_MS + 7000);
  const vm = aVm({ status: { startFailure: { consecutiveFailCount: 1, retryAfterTimestamp } } });
  const plan = decideVm(aWorld({ vm }));
  assert.deepEqual(plan.changes, []);
  assert.equal(plan.requeueAfterMs, 7000);
});

test('a failure under RerunOnFailure is recorded with the deletion', () => {
  const vm = aVm({ runStrategy: 'RerunOnFailure' });
  const { status } = decideVm(aWorld({ vm, vmi: aVmi('Failed', { vm }) }));
  assert.deepEqual(status?.['stateChangeRequests'], [{ action: 'Start' }]);
});

test('the reason that prevents a VM from running is reported in one Event', () => {
  const foreignVmi = aVmi('Running', { metadata: { ownerReferences: [] } });
  const { events, status } = decideVm(aWorld({ foreignVmi }));
  assert.deepEqual(
    events?.map(({ type, reason }) => `${type} ${reason}`),
    ['Warning FailedCreate'],
  );
  assert.deepEqual(decideVm(aWorld({ foreignVmi, vm: aVm({ status: status as VmStatus }) })).events, []);
});

test('a state claim of another owner is named in a condition and in one Event', () => {
  const stateConflicts = [disputed];
  const { events, status } = decideVm(aWorld({ stateConflicts }));
  const [event, ...more] = events ?? [];
  assert.deepEqual([event?.type, event?.reason, more], ['Warning', 'PersistentStateConflict', []]);
  const failure = findCondition((status as VmStatus).conditions, 'Failure');
  assert.deepEqual([failure?.status, failure?.message], ['True', event?.message]);
  assert.match(failure?.message ?? '', /"a" is marked as its persistent state, but belongs to ConfigMap "backup"; /);
  assert.deepEqual(decideVm(aWorld({ stateConflicts, vm: aVm({ status: status as VmStatus }) })).events, []);
});

test('the full status is written when a start fails', () => {
  assert.equal(decideVm(aWorld({ vm: bare, identity: undefined })).continueOnError, true);
  assert.equal(decideVm(aWorld()).continueOnError, true);
});

test('a failed creation of the instance is reported, a stale cache is not', () => {
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
