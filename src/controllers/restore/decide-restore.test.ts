import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { plannedRestores } from '#controllers/restore/build-claim.ts';
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
  aVolume,
  aVolumeSnapshot,
  aWorld,
  CLAIM,
  CREATED,
  MARK,
  NOW_MS,
  OTHER_UUID,
  RESTORES,
  type RestoreOverrides,
} from '#controllers/restore/restore-world.fixture.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { ApiError } from '#kube/api-error.ts';
import { findCondition } from '#kube/conditions.ts';
import type { PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Plan } from '#runtime/plan.ts';

type Status = NonNullable<VirtualMachineRestore['status']>;

/** What it does and what it says, in short. */
function told({ changes, status }: Plan): string[] {
  const { conditions } = (status ?? {}) as Status;
  const failure = findCondition(conditions, 'Failure');
  const said = failure ?? findCondition(conditions, 'Progressing');
  return [
    ...changes.map(({ do: verb, type }) => `${verb} ${type.kind}`),
    ...(said === undefined ? [] : [`${failure === undefined ? '' : 'Failure: '}${said.message}`]),
  ];
}

const HELD = { restoreInProgress: 'back' };
const DELETED = { deletionTimestamp: CREATED };
const known = (over: RestoreOverrides = {}) =>
  aRestore({ ...over, status: { targetUID: 'vm-uid', restores: RESTORES, ...over.status } });
const running = (
  policy?: VirtualMachineRestore['spec']['targetReadinessPolicy'],
  spec = { runStrategy: 'Always' },
) => ({
  restore: known({ spec: { targetReadinessPolicy: policy } }),
  vm: aVm({ spec, status: HELD }),
  vmi: aVmi(),
});
const IN_PLACE = { volumeRestorePolicy: 'InPlace' } as const;
const inPlace = (claim?: ReturnType<typeof aClaim>, users: string[] = []): Partial<RestoreWorld> => ({
  restore: known({ spec: IN_PLACE }),
  volumes: [aView({ claimName: 'db-root', users, ...(claim === undefined ? {} : { claim }) })],
});
const OLD = aClaim({ name: 'db-root', uid: 'old', annotations: {}, ownerReferences: undefined });
const OF_SNAPSHOT = aClaim({ ...OLD.metadata, uid: 'root-claim-uid' });
const WRITTEN = aVm({ status: HELD, metadata: { annotations: MARK } });
const DONE = [{ at: CREATED, what: 'restored', cause: 'VirtualMachineRestore back (restore-uid)' }];
const RESTORED = { ...aRecord(), status: { history: DONE } };
const FAILED = { conditions: [{ type: 'Failure', status: 'True' as const }] };
const making = aRestore({ status: { restores: RESTORES } });
const waitsForConsumer = { volumeBindingMode: 'WaitForFirstConsumer' } as StorageClass;

const steps: Record<string, [Partial<RestoreWorld>, string[]]> = {
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
  'the claims are named before they are made': [
    { restore: aRestore({ status: { targetUID: 'vm-uid' } }), volumes: [aView()] },
    ['Creating new PVCs'],
  ],
  'two volumes in one claim fail it': [
    { restore: aRestore({ status: { targetUID: 'vm-uid' } }), volumes: [aView(), aView({ volumeName: 'data' })] },
    [`Failure: two volumes are to be restored into the claim ${CLAIM}`],
  ],
  'the claims are made': [{ volumes: [aView()] }, ['create PersistentVolumeClaim']],
  'a missing VolumeSnapshot is waited for': [
    { volumes: [aView({ snapshot: undefined })] },
    ['Waiting for VolumeSnapshot vs-root, which does not exist'],
  ],
  'a claim of that name that is not ours fails it': [
    { volumes: [aView({ claim: aClaim({ annotations: {} }) })] },
    [`Failure: the claim ${CLAIM} exists already and was not made by this restore`],
  ],
  'InPlace: the old claim goes first': [inPlace(OLD), ['delete PersistentVolumeClaim']],
  'InPlace: it is waited for until it is gone': [
    inPlace(aClaim({ ...OLD.metadata, ...DELETED })),
    ['Waiting for new PVCs: db-root'],
  ],
  'InPlace: then it is made anew': [inPlace(), ['create PersistentVolumeClaim']],
  'InPlace: a claim that others use too is kept': [
    inPlace(OLD, ['VirtualMachine web', 'VirtualMachineInstance web']),
    ['Failure: the claim db-root cannot be replaced: VirtualMachine web uses it, too'],
  ],
  'InPlace: a claim that only has the name of the old one is kept': [
    { ...inPlace(OLD), vm: aVm({ claimName: 'another', status: HELD }) },
    ['Failure: the claim db-root cannot be replaced: it is not that of the VM'],
  ],
  'InPlace: the very claim of the snapshot is replaced, whatever the VM names now': [
    { ...inPlace(OF_SNAPSHOT), vm: aVm({ claimName: 'another', status: HELD }) },
    ['delete PersistentVolumeClaim'],
  ],
  'InPlace: once a disk was replaced, a claim that is in the way is waited for': [
    {
      ...inPlace(),
      volumes: [
        aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root' }) }),
        aView({ volumeName: 'data', claimName: 'db-data', claim: OLD, users: ['VirtualMachine web'] }),
      ],
    },
    ['the claim db-data cannot be replaced: VirtualMachine web uses it, too'],
  ],
  'a claim of that name that goes is waited for': [
    { volumes: [aView({ claim: aClaim({ annotations: {}, ...DELETED }) })] },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
  'InPlace: a claim of another restore is kept': [
    inPlace(aClaim({ name: 'db-root', annotations: {} })),
    ['Failure: the claim db-root cannot be replaced: it belongs to VirtualMachineRestore back'],
  ],
  'InPlace: nothing is deleted while the VM runs': [
    { ...inPlace(OLD), vmi: aVmi() },
    ['Waiting for target to be stopped (virtctl stop db) within 5m0s'],
  ],
  'InPlace: a target of another name replaces nothing': [
    {
      ...inPlace(OLD),
      restore: aRestore({ target: 'copy', spec: IN_PLACE, status: { restores: RESTORES } }),
      vm: undefined,
    },
    ['Failure: the claim db-root exists already and was not made by this restore'],
  ],
  'a claim that is not bound is waited for': [
    { volumes: [aView({ claim: aClaim({}, { phase: 'Pending' }) })] },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
  'a volume that is not filled is waited for': [
    { volumes: [aView({ claim: aClaim(), volume: aVolume([VOLUME_COPY_FINALIZER]) })] },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
  'a claim that waits for its first consumer is enough': [
    { volumes: [aView({ claim: aClaim({}, { phase: 'Pending' }), storageClass: waitsForConsumer })] },
    ['patch VirtualMachine'],
  ],
  'one that has its consumer is filled first': [
    {
      volumes: [aView({ claim: aClaim({}, { phase: 'Pending' }), storageClass: waitsForConsumer, volume: aVolume() })],
    },
    [`Waiting for new PVCs: ${CLAIM}`],
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

for (const [name, [world, want]] of Object.entries(steps)) {
  test(name, () => assert.deepEqual(told(decideRestore(aWorld(world))), want));
}

test('a target that is there is known by its uid from the first look', () => {
  const { status } = decideRestore(aWorld({ restore: aRestore() }));
  assert.equal((status as Status).targetUID, 'vm-uid');
});

test('the grace period ends by itself', () => {
  assert.equal(decideRestore(aWorld(running())).requeueAfterMs, 240_000);
});

test('the claim asks for what the snapshot holds, and belongs to the restore', () => {
  const [change] = decideRestore(aWorld({ volumes: [aView({ snapshot: aVolumeSnapshot('2Gi') })] })).changes;
  assert.ok(change?.do === 'create');
  const { metadata, spec } = change.object as PersistentVolumeClaim;
  assert.deepEqual(spec, {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'fast',
    resources: { requests: { storage: '2Gi' } },
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'vs-root' },
  });
  assert.deepEqual(metadata.labels, { disk: 'root' });
  assert.deepEqual(metadata.annotations, { note: 'kept', 'restore.kubevirt.io/name': 'back', ...MARK });
  assert.deepEqual(
    metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller]),
    [['restore-uid', true]],
  );
});

const long = 'v'.repeat(200);
const names: Record<string, [RestoreOverrides, RegExp]> = {
  'names are new': [{}, /^restore-restore-uid-root$/],
  'InPlace takes the name that the claim had': [{ spec: IN_PLACE }, /^db-root$/],
  'PrefixTargetName puts the target first': [{ spec: { volumeRestorePolicy: 'PrefixTargetName' } }, /^db-root$/],
  'an override wins': [
    { spec: { ...IN_PLACE, volumeRestoreOverrides: [{ volumeName: 'root', restoreName: 'mine' }] } },
    /^mine$/,
  ],
  'long names are cut': [
    { target: `${long}${long}`, spec: { volumeRestorePolicy: 'PrefixTargetName' } },
    /^v{244}-[0-9a-f]{8}$/,
  ],
};
for (const [name, [restore, want]] of Object.entries(names)) {
  test(name, () => {
    const [planned] = plannedRestores(aRestore(restore), aContent());
    assert.match(planned?.persistentVolumeClaim ?? '', want);
  });
}

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
