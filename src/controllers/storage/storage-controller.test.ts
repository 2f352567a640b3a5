/** Tests the decisions of the provisioner while one of its caches is behind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LEFTOVER_NODE_ANNOTATION, LOCAL_DRIVER, LOCAL_PROVISIONER } from '#api/names.ts';
import { storageController } from '#controllers/storage/storage-controller.ts';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  PODS,
  STORAGE_CLASSES,
} from '#kube/core-kinds.ts';
import type { ResourceType } from '#kube/meta.ts';
import { PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER } from '#kube/volume-keys.ts';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { startLagging } from '#runtime/testing/lagging-controllers.ts';

const TYPES: readonly ResourceType[] = [
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  STORAGE_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
];

function aVolume(name: string, annotations: Record<string, string> = {}): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { [PROVISIONED_BY]: LOCAL_PROVISIONER, ...annotations } },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: LOCAL_DRIVER, volumeHandle: name, volumeAttributes: { scope: 'node' } },
    },
  };
}

const RELEASED = { status: { phase: 'Released' as const } };

function aContent(name: string, volumeHandle: string) {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name },
    spec: {
      driver: LOCAL_DRIVER,
      deletionPolicy: 'Delete',
      source: { volumeHandle },
      volumeSnapshotRef: { namespace: 'default', name: 'snap' },
    },
  };
}

test('a released volume is kept while a snapshot of it is in progress that the cache does not show yet', async (t) => {
  const { api, clock, rest } = await startLagging(t, storageController.start, {
    types: TYPES,
    lagging: VOLUME_SNAPSHOT_CONTENTS,
  });
  api.create(VOLUME_SNAPSHOT_CONTENTS, aContent('content', 'pvc-1'));
  api.create(PERSISTENT_VOLUMES, { ...aVolume('pvc-1'), ...RELEASED });
  api.create(PERSISTENT_VOLUMES, { ...aVolume('pvc-2'), ...RELEASED });
  await rest();
  assert.deepEqual(
    api.all(PERSISTENT_VOLUMES).map(({ metadata }) => metadata.name),
    ['pvc-1'],
    'only the volume without a snapshot is deleted',
  );
  api.update(
    VOLUME_SNAPSHOT_CONTENTS,
    { ...api.get(VOLUME_SNAPSHOT_CONTENTS, 'content'), status: { readyToUse: true } },
    { subresource: 'status' },
  );
  // The cache has seen neither the begin nor the end of the snapshot.
  await clock.advance(USE_RECHECK_MS);
  await rest();
  assert.deepEqual(api.all(PERSISTENT_VOLUMES), []);
});

test('a leftover is not given up because the cache does not show its node yet', async (t) => {
  const { api, rest } = await startLagging(t, storageController.start, { types: TYPES, lagging: NODES });
  api.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' } });
  api.create(PERSISTENT_VOLUMES, aVolume('pvc-1', { [LEFTOVER_NODE_ANNOTATION]: 'new' }));
  await rest();
  assert.equal(
    api.get(PERSISTENT_VOLUMES, 'pvc-1').metadata.annotations?.[LEFTOVER_NODE_ANNOTATION],
    'new',
    'the node exists',
  );
});

test('a claim keeps its selected node although the cache does not show that node yet', async (t) => {
  const { api, rest } = await startLagging(t, storageController.start, { types: TYPES, lagging: NODES });
  api.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' } });
  api.create(STORAGE_CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'local' },
    provisioner: LOCAL_PROVISIONER,
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  api.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      namespace: 'default',
      name: 'disk',
      annotations: { [SELECTED_NODE]: 'new', [STORAGE_PROVISIONER]: LOCAL_PROVISIONER },
    },
    spec: {
      storageClassName: 'local',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    },
  });
  await rest();
  assert.equal(api.get(PERSISTENT_VOLUME_CLAIMS, 'default/disk').metadata.annotations?.[SELECTED_NODE], 'new');
  assert.equal(api.all(PERSISTENT_VOLUMES).length, 1, 'the volume is created on that node');
});
