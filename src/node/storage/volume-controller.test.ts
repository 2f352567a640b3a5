import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LOCAL_DRIVER, LOCAL_PROVISIONER, VOLUME_DATA_FINALIZER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume, PODS } from '#kube/core-kinds.ts';
import { PROVISIONED_BY } from '#kube/volume-keys.ts';
import type { StorageParts } from '#node/storage/storage-parts.ts';
import { startVolumeController } from '#node/storage/volume-controller.ts';
import { startLagging } from '#runtime/testing/lagging-controllers.ts';

const VOLUME: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    name: 'pvc-1',
    annotations: { [PROVISIONED_BY]: LOCAL_PROVISIONER, [VOLUME_NODE_ANNOTATION]: 'node-1' },
    finalizers: [VOLUME_DATA_FINALIZER],
  },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Delete',
    csi: { driver: LOCAL_DRIVER, volumeHandle: 'pvc-1' },
  },
};

test('the data of a deleted volume is kept if its policy became Retain while the cache was behind', async (t) => {
  let attempts = 0;
  const removeData = () => {
    attempts++;
    return Promise.reject(new Error('the disk is busy'));
  };
  const { api, clock, rest } = await startLagging(
    t,
    (parts) => {
      const { client, informer, clock: time, log, signal } = parts;
      const loop = startVolumeController({
        ...{ client, clock: time, log, signal, node: 'node-1' },
        persistentVolumes: informer(PERSISTENT_VOLUMES),
        pods: informer(PODS),
        vmis: informer(VIRTUAL_MACHINE_INSTANCES),
        volumes: { removeData },
      } as unknown as StorageParts);
      const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      return { name: 'volumes', enqueue: () => undefined, idle: () => loop.idle(), stopped: stopped.then(loop.stop) };
    },
    {
      types: [PERSISTENT_VOLUMES, PODS, VIRTUAL_MACHINE_INSTANCES],
      lagging: PERSISTENT_VOLUMES,
      prepare(fresh) {
        fresh.create(PERSISTENT_VOLUMES, VOLUME);
        fresh.delete(PERSISTENT_VOLUMES, 'pvc-1');
      },
    },
  );
  assert.equal(attempts, 1);
  api.patch(PERSISTENT_VOLUMES, 'pvc-1', { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
  await clock.advance(60_000);
  await rest();
  assert.equal(attempts, 1, 'the data is not removed');
  assert.deepEqual(api.all(PERSISTENT_VOLUMES), [], 'the object is');
});
