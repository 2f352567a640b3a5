/** Tests the decisions about a restore from its first step to its end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import { concludeRestore, decideRestore } from '#controllers/restore/decide-restore.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import {
  aClaim,
  aContent,
  aRecord,
  aRestore,
  aSnapshot,
  aView,
  aVm,
  aVmi,
  aWorld,
  CLAIM,
  MARK,
  NOW_MS,
  OTHER_UUID,
  RESTORES,
} from '#controllers/restore/testing/restore-world.ts';
import {
  type Status,
  describePlan,
  DELETED,
  startedRestore,
  runningTarget,
  IN_PLACE,
  inPlace,
  OLD_CLAIM,
  WRITTEN_VM,
  RESTORED_RECORD,
  FAILED_STATUS,
  creatingRestore,
  type Step,
  testSteps,
} from '#controllers/restore/testing/restore-steps.ts';
import { ApiError } from '#kube/api-error.ts';

const steps: Record<string, Step> = {
  'adds its finalizer before anything else': [
    { restore: aRestore({ metadata: { finalizers: [] } }) },
    ['patch VirtualMachineRestore'],
  ],
  'waits for a missing snapshot': [
    { restore: aRestore(), snapshot: undefined },
    ['VirtualMachineSnapshot before does not exist'],
  ],
  'waits for a snapshot that is not ready': [
    { restore: aRestore(), snapshot: aSnapshot({ phase: 'InProgress', readyToUse: false }) },
    ['VirtualMachineSnapshot before is not ready to use'],
  ],
  'waits for a missing content': [
    { restore: aRestore(), content: undefined },
    ['the content of VirtualMachineSnapshot before does not exist'],
  ],
  'waits for a content that is not ready': [
    { restore: aRestore(), content: aContent({ ready: false }) },
    ['the content of VirtualMachineSnapshot before is not ready to use'],
  ],
  'fails if the snapshot failed': [
    { restore: aRestore(), snapshot: aSnapshot({ phase: 'Failed', readyToUse: false }) },
    ['Failure: VirtualMachineSnapshot before has failed'],
  ],
  'waits until an existing target is held': [
    { vm: aVm({ status: { restoreInProgress: 'another' } }) },
    ['Waiting for VirtualMachine db to be held for this restore'],
  ],
  'waits for the deletion of a target that is being deleted': [
    { restore: aRestore(), vm: aVm({ metadata: DELETED }) },
    ['Waiting for the deletion of VirtualMachine db'],
  ],
  'fails if the target is another existing VM': [
    { restore: aRestore({ target: 'web' }), vm: aVm({ name: 'web' }) },
    ['Failure: restore source and restore target are different but restore target already exists'],
  ],
  'fails if the target was deleted': [{ vm: undefined }, ['Failure: VirtualMachine db was deleted']],
  'fails if the target was deleted and created again': [
    { vm: aVm({ metadata: { uid: 'another' } }) },
    ['Failure: VirtualMachine db was deleted and created again'],
  ],
  'fails if the target is being deleted': [
    { vm: aVm({ metadata: DELETED }) },
    ['Failure: VirtualMachine db is being deleted'],
  ],
  'fails if a user created the target meanwhile': [
    { restore: creatingRestore },
    ['Failure: VirtualMachine db was created meanwhile'],
  ],
  'waits for a running target': [runningTarget(), ['Waiting for target to be stopped (virtctl stop db) within 5m0s']],
  'fails if the target still runs after five minutes': [
    { ...runningTarget('WaitGracePeriod'), now: NOW_MS + 240_000 },
    ['Failure: VirtualMachine db was not stopped within 5m0s'],
  ],
  'starts the five minutes when the snapshot is ready': [
    {
      ...runningTarget('WaitGracePeriod'),
      snapshot: aSnapshot({
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2030-01-01T00:04:00Z' }],
      }),
      now: NOW_MS + 240_000,
    },
    ['Waiting for target to be stopped (virtctl stop db) within 5m0s'],
  ],
  'WaitEventually waits for ever': [
    { ...runningTarget('WaitEventually'), now: NOW_MS + 1e9 },
    ['Waiting for target to be stopped (virtctl stop db)'],
  ],
  'FailImmediate fails at once if the target runs': [
    runningTarget('FailImmediate'),
    ['Failure: VirtualMachine db is not stopped'],
  ],
  'FailImmediate accepts a guest that has ended': [
    {
      ...runningTarget('FailImmediate', { runStrategy: 'Manual' }),
      vmi: { ...aVmi(), status: { phase: 'Succeeded' } },
    },
    ['Waiting for target to be stopped'],
  ],
  'StopTarget stops the target': [
    runningTarget('StopTarget'),
    ['patch VirtualMachine', 'Waiting for target to be stopped'],
  ],
  'StopTarget stops the target once': [
    runningTarget('StopTarget', { runStrategy: 'Halted' }),
    ['Waiting for target to be stopped'],
  ],
  'does not stop the target for a restore that fails': [
    { ...runningTarget('StopTarget'), volumes: [aView({ claim: aClaim({ annotations: {} }) })] },
    [`Failure: PersistentVolumeClaim ${CLAIM} already exists and was not created by this restore`],
  ],
  'writes the target when all claims are filled': [{}, ['patch VirtualMachine']],
  'creates the record before a new target': [
    { restore: creatingRestore, vm: undefined, record: undefined },
    ['create VirtualMachineIdentity'],
  ],
  'waits for the deletion of the record of an earlier VM': [
    { restore: creatingRestore, vm: undefined },
    ['Waiting for the deletion of the identity record db of an earlier VirtualMachine'],
  ],
  'creates the VM at once if the snapshot has no record': [
    { restore: creatingRestore, vm: undefined, record: undefined, content: aContent({ identity: 'none' }) },
    ['create VirtualMachine'],
  ],
  'fails if a patch cannot be applied': [
    { restore: aRestore({ status: { restores: RESTORES }, spec: { patches: ['{"op":'] } }), vm: undefined },
    ['Failure: Cannot apply spec.patches: Unexpected end of JSON input'],
  ],
  'recognizes a VM that it created by its mark': [
    { restore: creatingRestore, vm: WRITTEN_VM },
    ['Created VirtualMachine db'],
  ],
  'restores the record after an existing VM': [{ vm: WRITTEN_VM }, ['patch VirtualMachineIdentity']],
  'restores a record under deletion that its finalizer holds': [
    { vm: WRITTEN_VM, record: aRecord({ ...DELETED, finalizers: [RECORD_FINALIZER] }) },
    ['patch VirtualMachineIdentity'],
  ],
  'waits for a record under deletion that its finalizer does not hold': [
    { vm: WRITTEN_VM, record: aRecord({ ...DELETED, finalizers: ['other'] }) },
    ['Waiting for the deletion of the identity record db of an earlier VirtualMachine'],
  ],
  'hands over the claims after the record': [
    { vm: WRITTEN_VM, record: RESTORED_RECORD },
    ['patch PersistentVolumeClaim'],
  ],
  'is complete when the claims are handed over': [
    { vm: WRITTEN_VM, record: RESTORED_RECORD, volumes: [aView({ claim: aClaim({ ownerReferences: undefined }) })] },
    ['Operation complete'],
  ],
  'completes without the snapshot once the VM is written': [
    { vm: WRITTEN_VM, snapshot: undefined, content: undefined, volumes: [] },
    ['Operation complete'],
  ],
  'does nothing once complete': [{ restore: startedRestore({ status: { complete: true } }), vm: undefined }, []],
  'deletes its claims and its record after a failure': [
    {
      restore: startedRestore({ status: FAILED_STATUS }),
      record: aRecord({ ownerReferences: [{ apiVersion: 'v', kind: 'k', name: 'back', uid: 'restore-uid' }] }),
    },
    ['delete PersistentVolumeClaim', 'delete VirtualMachineIdentity'],
  ],
  'InPlace: leaves the VM its only disks after a failure': [
    {
      restore: startedRestore({ spec: IN_PLACE, status: FAILED_STATUS }),
      vm: undefined,
      volumes: [aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root' }) })],
    },
    ['patch PersistentVolumeClaim'],
  ],
  'InPlace: leaves the VM its only disks before it is deleted': [
    {
      restore: startedRestore({ spec: IN_PLACE, status: FAILED_STATUS, metadata: DELETED }),
      vm: undefined,
      volumes: [aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root' }) })],
    },
    ['patch PersistentVolumeClaim'],
  ],
  'InPlace: removes its finalizer afterwards': [
    {
      restore: startedRestore({ spec: IN_PLACE, status: FAILED_STATUS, metadata: DELETED }),
      vm: undefined,
      volumes: [aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root', ownerReferences: undefined }) })],
    },
    ['patch VirtualMachineRestore'],
  ],
  'keeps a disk of a protected VM after a failure': [
    {
      restore: startedRestore({ status: FAILED_STATUS }),
      vm: undefined,
      volumes: [aView({ claim: aClaim({ annotations: { ...MARK, [PROTECTED_VMS_ANNOTATION]: 'db' } }) })],
    },
    ['patch PersistentVolumeClaim'],
  ],
  'keeps claims that it does not own after a failure': [
    {
      restore: startedRestore({ status: FAILED_STATUS }),
      volumes: [aView({ claim: aClaim({ ownerReferences: undefined }) })],
    },
    [],
  ],
  'is cancelled if deleted before the VM was written': [
    { restore: startedRestore({ metadata: DELETED }) },
    ['patch VirtualMachineRestore'],
  ],
  'is completed first if deleted after the VM was written': [
    { restore: startedRestore({ metadata: DELETED }), vm: WRITTEN_VM },
    ['patch VirtualMachineIdentity'],
  ],
  'is completed first if deleted after an old claim was replaced': [
    { ...inPlace(), restore: startedRestore({ metadata: DELETED, spec: IN_PLACE }) },
    ['create PersistentVolumeClaim'],
  ],
  'is cancelled if deleted before an old claim was replaced': [
    { ...inPlace(OLD_CLAIM), restore: startedRestore({ metadata: DELETED, spec: IN_PLACE }) },
    ['patch VirtualMachineRestore'],
  ],
  'does nothing if deleted without its finalizer': [
    { restore: startedRestore({ metadata: { ...DELETED, finalizers: ['other'] } }) },
    [],
  ],
};

testSteps(steps);

test('the first step records the uid of an existing target', () => {
  const { status } = decideRestore(aWorld({ restore: aRestore() }));
  assert.equal((status as Status).targetUID, 'vm-uid');
});

test('requeues at the end of the grace period', () => {
  assert.equal(decideRestore(aWorld(runningTarget())).requeueAfterMs, 240_000);
});

test('an Event reports a new uuid and the VM that has the old one', () => {
  const vm = aVm({ name: 'copy', firmware: { uuid: OTHER_UUID }, metadata: { annotations: MARK } });
  const restore = aRestore({ target: 'copy', status: { restores: RESTORES } });
  const [event] = decideRestore(aWorld({ restore, vm, uuidHolder: 'ns/db' })).events ?? [];
  assert.equal(event?.reason, 'FirmwareUUIDRenewed');
  assert.match(event?.message ?? '', /^VirtualMachine copy has the new firmware uuid f2a0.*VirtualMachine db has/);
});

test('an Event reports a new uuid also if the other VM was deleted, but not if a patch set it', () => {
  const vm = aVm({ name: 'copy', firmware: { uuid: OTHER_UUID }, metadata: { annotations: MARK } });
  const eventsOf = (patches?: string[]) => {
    const restore = aRestore({ target: 'copy', spec: { patches }, status: { restores: RESTORES } });
    return decideRestore(aWorld({ restore, vm })).events ?? [];
  };
  assert.match(eventsOf()[0]?.message ?? '', /another VirtualMachine had the uuid 0c53/);
  assert.deepEqual(eventsOf(['{"op":"replace","path":"/spec/template/spec/domain/firmware/uuid","value":""}']), []);
});

test('an invalid write fails the restore; after other errors it retries', () => {
  const [change] = decideRestore(aWorld()).changes;
  assert.ok(change !== undefined);
  const status = (code: number, reason: string) =>
    concludeRestore(aWorld(), [{ change, error: new ApiError(code, reason, 'no') }]);
  assert.deepEqual(describePlan({ changes: [], status: status(422, 'Invalid') }), [
    'Failure: Cannot patch VirtualMachine: no',
  ]);
  assert.deepEqual(describePlan({ changes: [], status: status(403, 'Forbidden') }), [
    'Cannot patch VirtualMachine: no',
  ]);
  assert.equal(status(409, 'Conflict'), undefined);
});

test('a claim that cannot be created in the place of a deleted one does not fail the restore', () => {
  const error = new ApiError(422, 'Invalid', 'no');
  const conclude = (world: RestoreWorld) => {
    const [change] = decideRestore(world).changes;
    assert.ok(change?.do === 'create');
    return describePlan({ changes: [], status: concludeRestore(world, [{ change, error }]) });
  };
  const replacing = startedRestore({ spec: IN_PLACE, status: { replacingClaims: true } });
  assert.deepEqual(conclude(aWorld({ ...inPlace(), restore: replacing })), ['Cannot create PersistentVolumeClaim: no']);
  assert.deepEqual(conclude(aWorld({ volumes: [aView()] })), ['Failure: Cannot create PersistentVolumeClaim: no']);
});
