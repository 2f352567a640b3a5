/** Tests the claims of a restore: their names, creation, replacement and readiness. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { REPLACED_BY_ANNOTATION } from '#api/storage/persistent-state.ts';
import { planRestores } from '#controllers/restore/build-claim.ts';
import { decideRestore } from '#controllers/restore/decide-restore.ts';
import {
  aClaim,
  aContent,
  aRestore,
  aView,
  aVm,
  aVmi,
  aVolume,
  aVolumeSnapshot,
  aWorld,
  CREATED,
  CLAIM,
  CLAIM_MARKS,
  MARK,
  RESTORES,
  type RestoreOverrides,
} from '#controllers/restore/testing/restore-world.ts';
import {
  HELD_SNAPSHOT,
  HELD_STATUS,
  DELETED,
  IN_PLACE,
  inPlace,
  OLD_CLAIM,
  SNAPSHOT_CLAIM,
  startedRestore,
  waitsForConsumer,
  type Step,
  testSteps,
} from '#controllers/restore/testing/restore-steps.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta } from '#kube/meta.ts';

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x', controller: true };
/** Returns the world of a restore that has recorded that it replaces claims. */
const replacing = (claim: ReturnType<typeof aClaim>) => ({
  ...inPlace(claim),
  restore: startedRestore({ spec: IN_PLACE, status: { replacingClaims: true } }),
});
const aSnapshotWith = (metadata: ObjectMeta) => {
  const snapshot = aVolumeSnapshot();
  return { ...snapshot, metadata: { ...snapshot.metadata, ...metadata } };
};

const steps: Record<string, Step> = {
  'names the claims before creating them': [
    { restore: aRestore({ status: { targetUID: 'vm-uid' } }), volumes: [aView()] },
    ['Creating new PVCs'],
  ],
  'fails if two volumes have the same claim': [
    { restore: aRestore({ status: { targetUID: 'vm-uid' } }), volumes: [aView(), aView({ volumeName: 'data' })] },
    [`Failure: two volumes would be restored into PersistentVolumeClaim ${CLAIM}`],
  ],
  'creates the claims': [{ volumes: [aView()] }, ['create PersistentVolumeClaim']],
  'waits for a missing VolumeSnapshot': [
    { volumes: [aView({ snapshot: undefined })] },
    ['Waiting for VolumeSnapshot vs-root, which does not exist'],
  ],
  'fails if a claim of that name exists that another restore or a user created': [
    { volumes: [aView({ claim: aClaim({ annotations: {} }) })] },
    [`Failure: PersistentVolumeClaim ${CLAIM} already exists and was not created by this restore`],
  ],
  'InPlace: records that it replaces claims first': [inPlace(OLD_CLAIM), ['Creating new PVCs']],
  'InPlace: waits if a user creates a claim in the place of the deleted one': [
    replacing(aClaim({ ...OLD_CLAIM.metadata, uid: 'x', ownerReferences: [CONFIG_MAP] })),
    ['Cannot replace PersistentVolumeClaim db-root: it belongs to ConfigMap x'],
  ],
  'InPlace: marks the old claim as replaced first': [replacing(OLD_CLAIM), ['patch PersistentVolumeClaim']],
  'InPlace: then deletes the old claim': [
    replacing(aClaim({ ...OLD_CLAIM.metadata, annotations: { [REPLACED_BY_ANNOTATION]: 'restore-uid' } })),
    ['delete PersistentVolumeClaim'],
  ],
  'InPlace: does not delete a claim that another restore has marked': [
    replacing(aClaim({ ...OLD_CLAIM.metadata, annotations: { [REPLACED_BY_ANNOTATION]: 'another' } })),
    ['patch PersistentVolumeClaim'],
  ],
  'InPlace: replaces an empty claim to which a user gave the mark of the restore': [
    replacing({ ...aClaim({ name: 'db-root' }), spec: { storageClassName: 'fast' } }),
    ['patch PersistentVolumeClaim'],
  ],
  'InPlace: marks the snapshot before the old claim': [
    {
      ...inPlace(OLD_CLAIM),
      volumes: [aView({ claimName: 'db-root', claim: OLD_CLAIM, snapshot: aSnapshotWith({ annotations: {} }) })],
    },
    ['patch VolumeSnapshot'],
  ],
  'InPlace: replaces nothing while its snapshot is being deleted': [
    {
      ...inPlace(OLD_CLAIM),
      volumes: [aView({ claimName: 'db-root', claim: OLD_CLAIM, snapshot: aSnapshotWith(DELETED) })],
    },
    ['Waiting for VolumeSnapshot vs-root, which is being deleted'],
  ],
  'InPlace: fails if another VolumeSnapshot has the name of the snapshot': [
    {
      ...inPlace(OLD_CLAIM),
      content: { ...aContent(), status: { readyToUse: true, creationTime: '2026-01-01T00:00:00Z' } },
      volumes: [
        aView({
          claimName: 'db-root',
          claim: OLD_CLAIM,
          snapshot: { ...aVolumeSnapshot(), status: { readyToUse: true, creationTime: '2026-01-01T00:00:01Z' } },
        }),
      ],
    },
    [
      'Failure: VolumeSnapshot vs-root was taken at 2026-01-01T00:00:01Z, after the snapshot of the VM (2026-01-01T00:00:00Z): it is another one',
    ],
  ],
  'InPlace: fails if another VolumeSnapshot of the same second has the name of the snapshot': [
    {
      ...inPlace(OLD_CLAIM),
      content: {
        ...aContent(),
        status: {
          readyToUse: true,
          creationTime: CREATED,
          volumeSnapshotStatus: [{ volumeSnapshotName: 'vs-root', volumeSnapshotUID: 'first' }],
        },
      },
    },
    ['Failure: VolumeSnapshot vs-root has the uid vs-uid, not first: it is another one'],
  ],
  'InPlace: replaces a claim with the source of the snapshot to which a user gave the mark of the restore': [
    replacing(aClaim({ name: 'db-root', annotations: MARK })),
    ['patch PersistentVolumeClaim'],
  ],
  'InPlace: recognizes the claim by its mark if an earlier version has begun the restore': [
    {
      ...inPlace(aClaim({ name: 'db-root', annotations: MARK })),
      restore: startedRestore({ spec: IN_PLACE, status: { replacingClaims: true, marksClaims: undefined } }),
    },
    [`Waiting for new PVCs: db-root`],
  ],
  'InPlace: holds the snapshot as the only copy, also if it is already needed': [
    {
      ...inPlace(OLD_CLAIM),
      volumes: [aView({ claimName: 'db-root', claim: OLD_CLAIM })],
    },
    ['patch VolumeSnapshot'],
  ],
  'InPlace: the snapshot is not the only copy once the new claim has its data': [
    {
      ...replacing(aClaim({ name: 'db-root' })),
      volumes: [
        aView({
          claimName: 'db-root',
          claim: aClaim({ name: 'db-root' }),
          volume: aVolume(),
          snapshot: HELD_SNAPSHOT,
        }),
      ],
    },
    ['patch VolumeSnapshot'],
  ],
  'InPlace: waits for the deletion of the old claim': [
    replacing(aClaim({ ...OLD_CLAIM.metadata, ...DELETED })),
    ['Waiting for new PVCs: db-root'],
  ],
  'InPlace: then creates the new claim': [inPlace(), ['create PersistentVolumeClaim']],
  'InPlace: keeps a claim that another VM uses': [
    inPlace(OLD_CLAIM, ['VirtualMachine web', 'VirtualMachineInstance web']),
    ['Failure: Cannot replace PersistentVolumeClaim db-root: VirtualMachine web also uses it'],
  ],
  'InPlace: keeps a claim that only has the name of the old one': [
    { ...inPlace(OLD_CLAIM), vm: aVm({ claimName: 'another', status: HELD_STATUS }) },
    ['Failure: Cannot replace PersistentVolumeClaim db-root: it does not belong to the VM'],
  ],
  'InPlace: replaces the claim of the snapshot also if the VM does not use it now': [
    { ...replacing(SNAPSHOT_CLAIM), vm: aVm({ claimName: 'another', status: HELD_STATUS }) },
    ['patch PersistentVolumeClaim'],
  ],
  'InPlace: waits for a conflicting claim once a disk was replaced': [
    {
      ...inPlace(),
      volumes: [
        aView({ claimName: 'db-root', claim: aClaim({ name: 'db-root' }) }),
        aView({ volumeName: 'data', claimName: 'db-data', claim: OLD_CLAIM, users: ['VirtualMachine web'] }),
      ],
    },
    ['Cannot replace PersistentVolumeClaim db-data: VirtualMachine web also uses it'],
  ],
  'waits for a claim of that name that is being deleted': [
    { volumes: [aView({ claim: aClaim({ annotations: {}, ...DELETED }) })] },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
  'InPlace: keeps a claim of another restore': [
    inPlace(aClaim({ name: 'db-root', annotations: {} })),
    ['Failure: Cannot replace PersistentVolumeClaim db-root: it belongs to VirtualMachineRestore back'],
  ],
  'InPlace: deletes nothing while the VM runs': [
    { ...inPlace(OLD_CLAIM), vmi: aVmi() },
    ['Waiting for target to be stopped (virtctl stop db) within 5m0s'],
  ],
  'InPlace: a target of another name replaces nothing': [
    {
      ...inPlace(OLD_CLAIM),
      restore: aRestore({ target: 'copy', spec: IN_PLACE, status: { restores: RESTORES } }),
      vm: undefined,
    },
    ['Failure: PersistentVolumeClaim db-root already exists and was not created by this restore'],
  ],
  'waits for a claim that is not bound': [
    { volumes: [aView({ claim: aClaim({}, { phase: 'Pending' }) })] },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
  'waits for a volume that is not filled': [
    { volumes: [aView({ claim: aClaim(), volume: aVolume([VOLUME_COPY_FINALIZER]) })] },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
  'does not wait for a claim that waits for its first consumer': [
    { volumes: [aView({ claim: aClaim({}, { phase: 'Pending' }), storageClass: waitsForConsumer })] },
    ['patch VirtualMachine'],
  ],
  'waits for a claim that already has its consumer': [
    {
      volumes: [aView({ claim: aClaim({}, { phase: 'Pending' }), storageClass: waitsForConsumer, volume: aVolume() })],
    },
    [`Waiting for new PVCs: ${CLAIM}`],
  ],
};

testSteps(steps);

test('the claim has the size and source of the snapshot, and is owned by the restore', () => {
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
  assert.deepEqual(metadata.annotations, { note: 'kept', 'restore.kubevirt.io/name': 'back', ...CLAIM_MARKS });
  assert.deepEqual(
    metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller]),
    [['restore-uid', true]],
  );
});

const long = 'v'.repeat(200);
const names: Record<string, [RestoreOverrides, RegExp]> = {
  'names are new by default': [{}, /^restore-restore-uid-root$/],
  'InPlace takes the name that the claim had': [{ spec: IN_PLACE }, /^db-root$/],
  'PrefixTargetName puts the target first': [{ spec: { volumeRestorePolicy: 'PrefixTargetName' } }, /^db-root$/],
  'an override wins': [
    { spec: { ...IN_PLACE, volumeRestoreOverrides: [{ volumeName: 'root', restoreName: 'mine' }] } },
    /^mine$/,
  ],
  'long names are shortened': [
    { target: `${long}${long}`, spec: { volumeRestorePolicy: 'PrefixTargetName' } },
    /^v{244}-[0-9a-f]{8}$/,
  ],
};
for (const [name, [restore, want]] of Object.entries(names)) {
  test(name, () => {
    const [planned] = planRestores(aRestore(restore), aContent());
    assert.match(planned?.persistentVolumeClaim ?? '', want);
  });
}
