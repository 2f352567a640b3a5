/** The claims of a restore: named, made from the snapshot, in place of others, filled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { plannedRestores } from '#controllers/restore/build-claim.ts';
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
  CLAIM,
  MARK,
  RESTORES,
  type RestoreOverrides,
} from '#controllers/restore/restore-world.fixture.ts';
import {
  HELD,
  DELETED,
  IN_PLACE,
  inPlace,
  OLD,
  OF_SNAPSHOT,
  waitsForConsumer,
  type Step,
  proveSteps,
} from '#controllers/restore/testing/restore-steps.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

const steps: Record<string, Step> = {
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
};

proveSteps(steps);

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
