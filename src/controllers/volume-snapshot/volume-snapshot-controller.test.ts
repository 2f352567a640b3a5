/** Tests the decisions of the controller while one of its caches is behind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LOCAL_DRIVER, VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { volumeSnapshotController } from '#controllers/volume-snapshot/volume-snapshot-controller.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from '#kube/core-kinds.ts';
import {
  BOUND_SNAPSHOT_FINALIZER,
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
} from '#kube/volume-snapshot-kinds.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { startLagging } from '#runtime/testing/lagging-controllers.ts';

const TYPES = [
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
];
const HANDLE = 'node/node-1/snapcontent-uid-1';

test('a deleted snapshot keeps its data while a volume is filled from it that the cache does not show yet', async (t) => {
  const { api, clock, rest } = await startLagging(t, volumeSnapshotController.start, {
    types: TYPES,
    lagging: PERSISTENT_VOLUMES,
    prepare(fresh) {
      const name = 'snapcontent-uid-1';
      fresh.create(VOLUME_SNAPSHOTS, {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        metadata: { namespace: 'default', name: 'snap', finalizers: [BOUND_SNAPSHOT_FINALIZER] },
        spec: { source: { persistentVolumeClaimName: 'disk' } },
        status: { boundVolumeSnapshotContentName: name, readyToUse: true },
      });
      fresh.create(VOLUME_SNAPSHOT_CONTENTS, {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshotContent',
        metadata: { name },
        spec: {
          driver: LOCAL_DRIVER,
          deletionPolicy: 'Delete',
          source: { volumeHandle: 'pvc-1' },
          volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 'uid-1' },
        },
        status: { snapshotHandle: HANDLE, readyToUse: true },
      });
    },
  });
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pvc-2', finalizers: [VOLUME_COPY_FINALIZER] },
    spec: { csi: { driver: LOCAL_DRIVER, volumeHandle: 'pvc-2', volumeAttributes: { snapshot: HANDLE } } },
  };
  api.create(PERSISTENT_VOLUMES, volume);
  api.delete(VOLUME_SNAPSHOTS, 'default/snap');
  await rest();
  assert.equal(api.all(VOLUME_SNAPSHOT_CONTENTS).length, 1, 'the node would remove the data with the content');
  api.update(PERSISTENT_VOLUMES, { ...volume, metadata: { name: 'pvc-2', finalizers: [] } });
  await clock.advance(USE_RECHECK_MS);
  await rest();
  assert.deepEqual(api.all(VOLUME_SNAPSHOT_CONTENTS), []);
});
