import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { IMPORTED_DEVICES_ANNOTATION, NEW_LAYOUT_ANNOTATION } from '#api/names.ts';
import { smbiosAnnotation } from '#api/identity/smbios-annotation.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';
import type { SnapshotRecord } from '#api/virtual-machine-identity/record-state.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import { decideVm } from '#controllers/vm/decide-vm.ts';
import { knownIdentity, recordIdentity } from '#controllers/vm/identity/identity.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import {
  aRecord,
  aVm,
  aVmi,
  aWorld,
  CONFIGURATION,
  DELETED,
  STATUS_AFTER_RUN,
  UUID,
} from '#controllers/vm/testing/vm-world.ts';

const DEVICES = [{ id: 'nic-default', type: 'interface', device: 'virtio' }];
const MAC = '02:00:00:00:00:07';
const SAVED = { firmware: { uuid: UUID }, interfaces: [{ name: 'default', macAddress: MAC }] };
const snapshot: SnapshotRecord = {
  name: 'nightly',
  takenAt: '2026-01-01T10:00:00Z',
  identity: { spec: SAVED, status: { devices: DEVICES } },
};
const IMPORTED = JSON.stringify({ from: 'OVF', devices: DEVICES });
const REMEMBERED: VmStatus = { identityRecordUID: 'record-uid' };

function lostVm(runStrategy: RunStrategy, annotations: Record<string, string> = {}, status: VmStatus = {}) {
  return aVm({ runStrategy, metadata: { annotations }, status: { ...REMEMBERED, ...status } });
}

const describeChanges = ({ changes }: ReturnType<typeof decideVm>) =>
  changes.map((change) => `${change.do} ${change.type.kind}`);
const conditionOf = (status: VmStatus | undefined, type: string) =>
  status?.conditions?.find((condition) => condition.type === type);

interface Case {
  readonly world: Partial<VmWorld>;
  /** The changes after the loss was reported. */
  readonly changes: readonly string[];
  /** The reason of the condition. */
  readonly reason: string;
}

const accepted = { [NEW_LAYOUT_ANNOTATION]: 'record-uid' };
const nothing = { identity: undefined, lostRecord: {} };
const inSnapshot = { identity: undefined, lostRecord: { snapshot } };
/** A record that was created again and still has no devices. */
const empty = { identity: aRecord(lostVm('Always'), { uid: 'new-record' }) };

const cases: Record<string, Case> = {
  'a lost record is created again from a running guest': {
    world: { vm: lostVm('Always'), vmi: aVmi('Running'), ...nothing },
    changes: ['create VirtualMachineIdentity'],
    reason: 'Rebuilding',
  },
  'a lost record is created again while the guest stops': {
    world: { vm: lostVm('Always'), vmi: aVmi('Running', { metadata: { ...DELETED, finalizers: [] } }), ...nothing },
    changes: ['create VirtualMachineIdentity'],
    reason: 'Rebuilding',
  },
  'a lost record is created again from a snapshot before a start': {
    world: { vm: lostVm('Always'), ...inSnapshot },
    changes: ['create VirtualMachineIdentity'],
    reason: 'Rebuilding',
  },
  'a start waits for the devices of the rebuilt record': {
    world: { vm: lostVm('Always'), ...inSnapshot, ...empty },
    changes: [],
    reason: 'Rebuilding',
  },
  'a lost record is created again from a snapshot without a start': {
    world: { vm: lostVm('Halted'), ...inSnapshot },
    changes: ['create VirtualMachineIdentity'],
    reason: 'Rebuilding',
  },
  'a restore that holds the VM writes the record itself': {
    world: { vm: lostVm('Halted'), ...inSnapshot, lock: { kind: 'restore', name: 'r' } },
    changes: [],
    reason: 'Rebuilding',
  },
  'an import is used like a snapshot': {
    world: { vm: lostVm('Always', { [IMPORTED_DEVICES_ANNOTATION]: IMPORTED }), ...nothing },
    changes: ['create VirtualMachineIdentity'],
    reason: 'Rebuilding',
  },
  'a VM does not start if there is no source for its record': {
    world: { vm: lostVm('Always'), ...nothing },
    changes: [],
    reason: 'DecisionRequired',
  },
  'an instance that has ended has no addresses': {
    world: { vm: lostVm('Manual'), vmi: aVmi('Succeeded', { status: STATUS_AFTER_RUN }), ...nothing, ...empty },
    changes: [],
    reason: 'DecisionRequired',
  },
  'a decision about another record does not count': {
    world: { vm: lostVm('Always', { [NEW_LAYOUT_ANNOTATION]: 'earlier-record' }), ...nothing },
    changes: [],
    reason: 'DecisionRequired',
  },
  'the decision about this record allows a start': {
    world: { vm: lostVm('Always', accepted), ...nothing },
    changes: ['create VirtualMachineIdentity'],
    reason: 'NewLayoutAccepted',
  },
  'the instance is created after the decision': {
    world: { vm: lostVm('Always', accepted), ...nothing, ...empty },
    changes: ['create VirtualMachineInstance'],
    reason: 'NewLayoutAccepted',
  },
};

for (const [sentence, { world, changes, reason }] of Object.entries(cases)) {
  test(sentence, () => {
    const first = decideVm(aWorld(world));
    assert.deepEqual(first.changes, [], 'the loss is reported before anything is done about it');
    const [event, ...more] = first.events ?? [];
    assert.deepEqual([event?.type, event?.reason, more.length], ['Warning', 'IdentityRecordLost', 0]);
    const condition = conditionOf(first.status, 'IdentityRecordLost');
    assert.deepEqual([condition?.status, condition?.reason], ['True', reason]);
    assert.equal(condition?.message, event?.message);

    const vm = { ...world.vm!, status: first.status as VmStatus };
    const second = decideVm(aWorld({ ...world, vm }));
    assert.deepEqual(describeChanges(second), changes);
    assert.deepEqual(second.events ?? [], [], 'the Event is sent once');
  });
}

test('a start that waits for a decision reports what to do', () => {
  const { status } = decideVm(aWorld({ vm: lostVm('Always'), ...nothing }));
  const failure = conditionOf(status, 'Failure');
  assert.equal(failure?.reason, 'IdentityRecordLost');
  assert.equal(
    failure?.message,
    'Cannot start the VM: its identity record record-uid is lost, and neither a running guest nor a snapshot has its device addresses; a start would give all devices new addresses. Restore the record, or accept new addresses with "virtctl identity renew db" (annotation identity.selfsame.io/accept-new-layout: record-uid)',
  );
  const halted = decideVm(aWorld({ vm: lostVm('Halted'), ...nothing }));
  assert.equal(conditionOf(halted.status, 'Failure'), undefined, 'no start was requested');
});

test('a rebuilt record is reported before the next start', () => {
  const before = decideVm(aWorld({ vm: lostVm('Always'), ...inSnapshot }));
  const vm = { ...lostVm('Always'), status: before.status as VmStatus };
  const history = [{ at: '2026-01-01T12:00:00Z', what: 'x', cause: 'rebuilt from snapshot nightly' }];
  const identity = { ...aRecord(vm, { uid: 'new-record' }), status: { devices: DEVICES, history } };
  const plan = decideVm(aWorld({ vm, identity }));
  assert.deepEqual(plan.changes, []);
  assert.deepEqual(
    plan.events?.map(({ reason }) => reason),
    ['IdentityRecordRebuilt'],
  );
  assert.ok(plan.events?.[0]?.message.includes('(rebuilt from snapshot nightly)'));
  assert.equal(conditionOf(plan.status, 'IdentityRecordLost'), undefined);
  assert.equal(plan.status?.['identityRecordUID'], 'new-record');
  const next = decideVm(aWorld({ vm: { ...vm, status: plan.status }, identity }));
  assert.deepEqual(describeChanges(next), ['create VirtualMachineInstance']);
});

test('the uid of the record is stored once it has devices', () => {
  const vm = aVm({ runStrategy: 'Halted' });
  const uidOf = (identity: VmWorld['identity'], known: VmStatus = {}) =>
    decideVm(aWorld({ vm: { ...vm, status: known }, identity })).status?.['identityRecordUID'];
  const filled = { ...aRecord(vm), status: { devices: [] } };
  assert.equal(uidOf(aRecord(vm)), undefined);
  assert.equal(uidOf(filled), 'record-uid');
  assert.equal(uidOf(undefined, REMEMBERED), 'record-uid', 'the uid stays when the record is lost');
  assert.equal(uidOf({ ...filled, metadata: { ...filled.metadata, ownerReferences: [] } }), undefined);
});

test('a lost record is created from the snapshot, including MAC addresses', () => {
  const world = aWorld({ vm: lostVm('Halted'), ...inSnapshot });
  const [change] = recordIdentity(world);
  assert.ok(change?.do === 'create');
  assert.deepEqual((change.object as { spec?: unknown }).spec, {
    firmware: { uuid: UUID, serial: 's1' },
    interfaces: [{ name: 'default', macAddress: MAC }],
  });
});

test('the running guest has precedence over the snapshot, which has the unplugged devices', () => {
  const vm = lostVm('Always');
  const saved = { interfaces: [...SAVED.interfaces, { name: 'away', macAddress: '02:00:00:00:00:09' }] };
  const annotations = smbiosAnnotation({ manufacturer: 'Old' });
  const world = aWorld({
    vm,
    vmi: aVmi('Running', { vm, metadata: { annotations } }),
    identity: undefined,
    lostRecord: { snapshot: { ...snapshot, identity: { spec: saved } } },
    configuration: { ...CONFIGURATION, smbios: { manufacturer: 'Acme' } },
  });
  assert.deepEqual(knownIdentity(world)?.interfaces, [
    { name: 'default', macAddress: deriveMac('vm-uid', 'default') },
    { name: 'away', macAddress: '02:00:00:00:00:09' },
  ]);
  const [change] = recordIdentity(world);
  const { smbios } = (change?.do === 'create' ? change.object['spec'] : {}) as IdentitySpec;
  assert.deepEqual(smbios, { manufacturer: 'Old' }, 'the manufacturer does not change');
});

test('a VM under deletion reports no lost record', () => {
  const vm = aVm({ metadata: DELETED, status: REMEMBERED });
  const plan = decideVm(aWorld({ vm, ...nothing }));
  assert.deepEqual([describeChanges(plan), plan.events ?? []], [['patch VirtualMachine'], []]);
});
