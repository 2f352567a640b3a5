/** Tests that contents are kept for restores even while the cache of restores is behind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VM_SNAPSHOT_CONTENT_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { snapshotController } from '#controllers/snapshot/snapshot-controller.ts';
import { aRestore } from '#controllers/snapshot/testing/snapshot-world.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
import { VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { startLagging } from '#runtime/testing/lagging-controllers.ts';

test('a deleted content is kept while a restore needs it that the cache does not show yet', async (t) => {
  const { api, clock, rest } = await startLagging(t, snapshotController.start, {
    types: [
      VIRTUAL_MACHINES,
      VIRTUAL_MACHINE_IDENTITIES,
      VIRTUAL_MACHINE_INSTANCES,
      VIRTUAL_MACHINE_RESTORES,
      VIRTUAL_MACHINE_SNAPSHOTS,
      VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
      PERSISTENT_VOLUME_CLAIMS,
      PERSISTENT_VOLUMES,
      VOLUME_SNAPSHOT_CLASSES,
      VOLUME_SNAPSHOTS,
    ],
    lagging: VIRTUAL_MACHINE_RESTORES,
  });
  const restore = aRestore();
  const { namespace, name } = restore.metadata;
  api.create(VIRTUAL_MACHINE_RESTORES, { ...restore, metadata: { namespace, name } });
  api.create(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshotContent',
    metadata: { namespace, name: 'content', finalizers: [VM_SNAPSHOT_CONTENT_FINALIZER] },
    spec: { virtualMachineSnapshotName: 'snap', source: { virtualMachine: { metadata: { name: 'db' } } } },
  });
  api.delete(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, `${namespace}/content`);
  await rest();
  assert.equal(api.all(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).length, 1, 'the restore needs the copies of the disks');
  api.update(
    VIRTUAL_MACHINE_RESTORES,
    { ...restore, metadata: { namespace, name }, status: { complete: true } },
    { subresource: 'status' },
  );
  await clock.advance(USE_RECHECK_MS);
  await rest();
  assert.deepEqual(api.all(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS), []);
});
