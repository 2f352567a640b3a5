/**
 * Each field has one writer, as recorded in managedFields: through the whole life of a VM, no two of our parts write
 * the same field, except where they cooperate by design.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describePaths } from '#kube/field-sets/describe-paths.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import type { KubeObject } from '#kube/meta.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import { aClaim, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

/** Fields that a user and one of our parts both write, or that one part hands to another. `test` is the user. */
const SHARED_BY_DESIGN: readonly string[] = [
  // The node of a volume: storage sets it first, and a migration that moved the volume updates it.
  'PersistentVolume .metadata.annotations.selfsame.io/volume-node: migration-controller, storage-claims',
  // `virtctl start` and `stop` change the run strategy for the user.
  'VirtualMachine .spec.runStrategy: selfsame-subresources, test',
  // A restore replaces the claims that the user named by the restored ones.
  'VirtualMachine .spec.template.spec.volumes: restore-controller, test',
  // Each adds entries to the history: one for changes, the other for restores.
  'VirtualMachineIdentity .status.history: device-map-controller, restore-controller',
];

/** Collections that several of our parts write. */
const WATCHED = [
  'virtualmachines.kubevirt.io',
  'virtualmachineinstances.kubevirt.io',
  'virtualmachineinstancemigrations.kubevirt.io',
  'virtualmachineidentities.identity.selfsame.io',
  'virtualmachinesnapshots.snapshot.kubevirt.io',
  'virtualmachinesnapshotcontents.snapshot.kubevirt.io',
  'virtualmachinerestores.snapshot.kubevirt.io',
  'volumesnapshots.snapshot.storage.k8s.io',
  'volumesnapshotcontents.snapshot.storage.k8s.io',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'nodes',
];

interface Field {
  /** Kind and path: `VirtualMachineInstance .status.phase`. */
  readonly name: string;
  /** All managers that owned the field at any time. */
  readonly writers: Set<string>;
}

/** Records the writers of the fields of each object, by its uid and their path. */
function followOwners(plane: VmPlane): { readonly fields: ReadonlyMap<string, Field>; stop(): void } {
  const fields = new Map<string, Field>();
  const record = ({ kind, metadata }: KubeObject) => {
    for (const { manager = '', fieldsV1 } of metadata.managedFields ?? []) {
      for (const path of describePaths(parseFieldsV1(fieldsV1))) {
        const id = `${metadata.uid} ${path}`;
        const known = fields.get(id);
        if (known === undefined) fields.set(id, { name: `${kind} ${path}`, writers: new Set([manager]) });
        else known.writers.add(manager);
      }
    }
  };
  const { store } = plane.server;
  const stops = WATCHED.map((collection) =>
    store.watch({ collection, since: store.revision }, (events) => {
      for (const { entry } of events) record(decodeStored(entry.bytes));
    }),
  );
  return {
    fields,
    stop() {
      for (const stop of stops) stop();
    },
  };
}

test('no field has two writers in the life of a VM', async (t) => {
  const plane = await startVmPlane(t, { nodes: 2 });
  const { fields, stop } = followOwners(plane);
  await plane.apply(aClaim('db-data'));
  await plane.apply(aVmOnClaim('db', 'db-data', { runStrategy: 'Always' }));
  await plane.runVerb('restart', 'db');
  const migration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'move' },
  };
  await plane.apply({ ...migration, spec: { vmiName: 'db' } });
  await plane.apply(aSnapshot('then', 'db'));
  await plane.runVerb('stop', 'db');
  await plane.apply(aRestore('back', 'db', 'then'));
  await plane.runVerb('start', 'db');
  await plane.beginDelete('VirtualMachine', 'db');
  stop();
  assert.ok(fields.size > 100, 'some fields have owners');
  const shared = [...fields.values()].filter(({ writers }) => writers.size > 1);
  const texts = shared.map(({ name, writers }) => `${name}: ${[...writers].toSorted().join(', ')}`);
  assert.deepEqual([...new Set(texts)].toSorted(), SHARED_BY_DESIGN);
});
