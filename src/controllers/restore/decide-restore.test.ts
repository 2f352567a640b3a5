/** A restore from its first look to its end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import { concludeRestore, decideRestore } from '#controllers/restore/decide-restore.ts';
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
} from '#controllers/restore/restore-world.fixture.ts';
import {
  type Status,
  told,
  DELETED,
  known,
  running,
  IN_PLACE,
  inPlace,
  OLD,
  WRITTEN,
  RESTORED,
  FAILED,
  making,
  type Step,
  proveSteps,
} from '#controllers/restore/testing/restore-steps.ts';
import { ApiError } from '#kube/api-error.ts';

const steps: Record<string, Step> = {
  'it is held before anything else': [
    { restore: aRestore({ metadata: { finalizers: [] } }) },
    ['patch VirtualMachineRestore'],
  ],
  'a missing snapshot is waited for': [
    { restore: aRestore(), snapshot: undefined },
    ['VirtualMachineSnapshot before does not exist'],
  ],
  'a snapshot that is not ready is waited for': [
    { restore: aRestore(), snapshot: aSnapshot({ phase: 'InProgress', readyToUse: false }) },
    ['VirtualMachineSnapshot before is not ready to use'],
  ],
  'a missing content is waited for': [
    { restore: aRestore(), content: undefined },
    ['the content of VirtualMachineSnapshot before does not exist'],
  ],
  'a content that is not ready is waited for': [
    { restore: aRestore(), content: aContent({ ready: false }) },
    ['the content of VirtualMachineSnapshot before is not ready to use'],
  ],
  'a failed snapshot fails it': [
    { restore: aRestore(), snapshot: aSnapshot({ phase: 'Failed', readyToUse: false }) },
    ['Failure: VirtualMachineSnapshot before has failed'],
  ],
  'a target that is there is waited for until it is held': [
    { vm: aVm({ status: { restoreInProgress: 'another' } }) },
    ['Waiting for VirtualMachine db to be held for this restore'],
  ],
  'a target that is being deleted is waited for': [
    { restore: aRestore(), vm: aVm({ metadata: DELETED }) },
    ['Waiting for VirtualMachine db, which is being deleted, to be gone'],
  ],
  'another VM is not made what this one was': [
    { restore: aRestore({ target: 'web' }), vm: aVm({ name: 'web' }) },
    ['Failure: restore source and restore target are different but restore target already exists'],
  ],
  'a target that is gone fails it': [{ vm: undefined }, ['Failure: VirtualMachine db is gone']],
  'a target that was made anew fails it': [
    { vm: aVm({ metadata: { uid: 'another' } }) },
    ['Failure: VirtualMachine db was deleted and made anew'],
  ],
  'a target that goes meanwhile fails it': [
    { vm: aVm({ metadata: DELETED }) },
    ['Failure: VirtualMachine db is being deleted'],
  ],
  'a VM that somebody else makes meanwhile is left alone': [
    { restore: making },
    ['Failure: VirtualMachine db was created meanwhile'],
  ],
  'a running target is waited for': [running(), ['Waiting for target to be stopped (virtctl stop db) within 5m0s']],
  'a target that runs on after five minutes fails it': [
    { ...running('WaitGracePeriod'), now: NOW_MS + 240_000 },
    ['Failure: VirtualMachine db was not stopped within 5m0s'],
  ],
  'the five minutes begin when the snapshot is whole': [
    {
      ...running('WaitGracePeriod'),
      snapshot: aSnapshot({
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2030-01-01T00:04:00Z' }],
      }),
      now: NOW_MS + 240_000,
    },
    ['Waiting for target to be stopped (virtctl stop db) within 5m0s'],
  ],
  'WaitEventually waits for ever': [
    { ...running('WaitEventually'), now: NOW_MS + 1e9 },
    ['Waiting for target to be stopped (virtctl stop db)'],
  ],
  'FailImmediate does not wait': [running('FailImmediate'), ['Failure: VirtualMachine db is not stopped']],
  'FailImmediate has nothing against a guest that has ended': [
    { ...running('FailImmediate', { runStrategy: 'Manual' }), vmi: { ...aVmi(), status: { phase: 'Succeeded' } } },
    ['Waiting for target to be stopped'],
  ],
  'StopTarget stops it': [running('StopTarget'), ['patch VirtualMachine', 'Waiting for target to be stopped']],
  'StopTarget stops it once': [running('StopTarget', { runStrategy: 'Halted' }), ['Waiting for target to be stopped']],
  'nobody is stopped for a restore that cannot go on': [
    { ...running('StopTarget'), volumes: [aView({ claim: aClaim({ annotations: {} }) })] },
    [`Failure: the claim ${CLAIM} exists already and was not made by this restore`],
  ],
  'the target is written when all claims are filled': [{}, ['patch VirtualMachine']],
  'a target that is made has its record first': [
    { restore: making, vm: undefined, record: undefined },
    ['create VirtualMachineIdentity'],
  ],
  'the record of an earlier VM is waited for': [
    { restore: making, vm: undefined },
    ['Waiting for the identity record db of an earlier VirtualMachine to go'],
  ],
  'without a record in the snapshot the VM is made at once': [
    { restore: making, vm: undefined, record: undefined, content: aContent({ identity: 'none' }) },
    ['create VirtualMachine'],
  ],
  'a patch that does not fit fails it': [
    { restore: aRestore({ status: { restores: RESTORES }, spec: { patches: ['{"op":'] } }), vm: undefined },
    ['Failure: Cannot apply spec.patches: Unexpected end of JSON input'],
  ],
  'a VM that was made is known by its mark': [{ restore: making, vm: WRITTEN }, ['Created VirtualMachine db']],
  'after the VM its record is set back': [{ vm: WRITTEN }, ['patch VirtualMachineIdentity']],
  'also while somebody deletes it, as long as it is held': [
    { vm: WRITTEN, record: aRecord({ ...DELETED, finalizers: [RECORD_FINALIZER] }) },
    ['patch VirtualMachineIdentity'],
  ],
  'one that nothing holds is waited for': [
    { vm: WRITTEN, record: aRecord({ ...DELETED, finalizers: ['other'] }) },
    ['Waiting for the identity record db of an earlier VirtualMachine to go'],
  ],
  'then the claims are handed over': [{ vm: WRITTEN, record: RESTORED }, ['patch PersistentVolumeClaim']],
  'then it is complete': [
    { vm: WRITTEN, record: RESTORED, volumes: [aView({ claim: aClaim({ ownerReferences: undefined }) })] },
    ['Operation complete'],
  ],
  'the end needs no snapshot any more': [
    { vm: WRITTEN, snapshot: undefined, content: undefined, volumes: [] },
    ['Operation complete'],
  ],
  'one that is complete is left alone': [{ restore: known({ status: { complete: true } }), vm: undefined }, []],
  'one that failed takes its claims and its record away': [
    {
      restore: known({ status: FAILED }),
      record: aRecord({ ownerReferences: [{ apiVersion: 'v', kind: 'k', name: 'back', uid: 'restore-uid' }] }),
    },
    ['delete PersistentVolumeClaim', 'delete VirtualMachineIdentity'],
  ],
  'one that failed in place leaves the VM the only disks that it has': [
    {
      restore: known({ spec: IN_PLACE, status: FAILED }),
      vm: undefined,
      volumes: [aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root' }) })],
    },
    ['patch PersistentVolumeClaim'],
  ],
  'so it does before it goes': [
    {
      restore: known({ spec: IN_PLACE, status: FAILED, metadata: DELETED }),
      vm: undefined,
      volumes: [aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root' }) })],
    },
    ['patch PersistentVolumeClaim'],
  ],
  'and then it goes': [
    {
      restore: known({ spec: IN_PLACE, status: FAILED, metadata: DELETED }),
      vm: undefined,
      volumes: [aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root', ownerReferences: undefined }) })],
    },
    ['patch VirtualMachineRestore'],
  ],
  'one that failed lets go of a disk of a protected VM, by whomever it was put under the restore': [
    {
      restore: known({ status: FAILED }),
      vm: undefined,
      volumes: [aView({ claim: aClaim({ annotations: { ...MARK, [PROTECTED_VMS_ANNOTATION]: 'db' } }) })],
    },
    ['patch PersistentVolumeClaim'],
  ],
  'one that failed touches nothing of others': [
    {
      restore: known({ status: FAILED }),
      volumes: [aView({ claim: aClaim({ ownerReferences: undefined }) })],
    },
    [],
  ],
  'deleted before the VM was written it is given up': [
    { restore: known({ metadata: DELETED }) },
    ['patch VirtualMachineRestore'],
  ],
  'deleted after the VM was written it is finished first': [
    { restore: known({ metadata: DELETED }), vm: WRITTEN },
    ['patch VirtualMachineIdentity'],
  ],
  'deleted after an old claim was replaced it is finished first': [
    { ...inPlace(), restore: known({ metadata: DELETED, spec: IN_PLACE }) },
    ['create PersistentVolumeClaim'],
  ],
  'deleted before an old claim was replaced it is given up': [
    { ...inPlace(OLD), restore: known({ metadata: DELETED, spec: IN_PLACE }) },
    ['patch VirtualMachineRestore'],
  ],
  'deleted and not held by us it begins nothing': [
    { restore: known({ metadata: { ...DELETED, finalizers: ['other'] } }) },
    [],
  ],
};

proveSteps(steps);

test('a target that is there is known by its uid from the first look', () => {
  const { status } = decideRestore(aWorld({ restore: aRestore() }));
  assert.equal((status as Status).targetUID, 'vm-uid');
});

test('the grace period ends by itself', () => {
  assert.equal(decideRestore(aWorld(running())).requeueAfterMs, 240_000);
});

test('nobody gets another uuid without being told who has the old one', () => {
  const vm = aVm({ name: 'copy', firmware: { uuid: OTHER_UUID }, metadata: { annotations: MARK } });
  const restore = aRestore({ target: 'copy', status: { restores: RESTORES } });
  const [event] = decideRestore(aWorld({ restore, vm, uuidHolder: 'ns/db' })).events ?? [];
  assert.equal(event?.reason, 'FirmwareUUIDRenewed');
  assert.match(event?.message ?? '', /^VirtualMachine copy has the new firmware uuid f2a0.*VirtualMachine db has/);
});

test('nor when the other one is gone meanwhile; but who asked for another uuid knows', () => {
  const vm = aVm({ name: 'copy', firmware: { uuid: OTHER_UUID }, metadata: { annotations: MARK } });
  const eventsOf = (patches?: string[]) => {
    const restore = aRestore({ target: 'copy', spec: { patches }, status: { restores: RESTORES } });
    return decideRestore(aWorld({ restore, vm })).events ?? [];
  };
  assert.match(eventsOf()[0]?.message ?? '', /another VirtualMachine had the uuid 0c53/);
  assert.deepEqual(eventsOf(['{"op":"replace","path":"/spec/template/spec/domain/firmware/uuid","value":""}']), []);
});

test('what the API finds invalid fails it, and everything else is tried again', () => {
  const [change] = decideRestore(aWorld()).changes;
  assert.ok(change !== undefined);
  const status = (code: number, reason: string) =>
    concludeRestore(aWorld(), [{ change, error: new ApiError(code, reason, 'no') }]);
  assert.deepEqual(told({ changes: [], status: status(422, 'Invalid') }), ['Failure: Cannot patch VirtualMachine: no']);
  assert.deepEqual(told({ changes: [], status: status(403, 'Forbidden') }), ['Cannot patch VirtualMachine: no']);
  assert.equal(status(409, 'Conflict'), undefined);
});
