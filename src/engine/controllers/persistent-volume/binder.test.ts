/** Tests the decisions of the binder while its cache of volumes is behind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineControllerParts } from '#engine/controllers/engine-controller.ts';
import { ENGINE_NODES } from '#engine/controllers/kinds.ts';
import { persistentVolumeBinder } from '#engine/controllers/persistent-volume/binder.ts';
import { aClaim, aVolume } from '#engine/controllers/persistent-volume/testing/sample-storage.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { startLagging } from '#runtime/testing/lagging-controllers.ts';

const BOUND = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };

test('a bound claim is lost only if the server has no volume of that name', async (t) => {
  const start = (parts: object) => persistentVolumeBinder.start(parts as EngineControllerParts);
  const { api, rest } = await startLagging(t, start, {
    types: [PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, ENGINE_NODES],
    lagging: PERSISTENT_VOLUMES,
  });
  // The second object that the API creates gets this uid.
  const claimRef = { namespace: 'default', name: 'present', uid: 'uid-2' };
  api.create(PERSISTENT_VOLUMES, { ...aVolume('present', { spec: { claimRef } }), metadata: { name: 'present' } });
  for (const volumeName of ['present', 'absent']) {
    const claim = aClaim({ spec: { volumeName } });
    const { namespace } = claim.metadata;
    api.create(PERSISTENT_VOLUME_CLAIMS, { ...claim, metadata: { ...BOUND, namespace, name: volumeName } });
  }
  await rest();
  const phases = api
    .all(PERSISTENT_VOLUME_CLAIMS)
    .map(({ metadata, status }) => [metadata.name, status?.phase] as const);
  assert.deepEqual(phases, [
    ['present', 'Bound'],
    ['absent', 'Lost'],
  ]);
});
