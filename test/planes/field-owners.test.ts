/**
 * Each field has one writer, told by managedFields: through the whole life of a VM, nobody writes a field that another
 * of our own has written, except where that is how they work together.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describePaths } from '#kube/field-sets/describe-paths.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import type { KubeObject } from '#kube/meta.ts';
import { decodeStored } from '#engine/codec.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import { aClaim, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

/** Where a human's write and one of ours meet, or two of ours hand a field on. `test` is the human. */
const BY_DESIGN: readonly string[] = [
  // Where a volume is: storage says it first, and a migration that moved it says it anew.
  'PersistentVolume .metadata.annotations.selfsame.io/volume-node: migration-controller, storage-claims',
  // `virtctl start` and `stop` change the wish of the human who asks for it.
  'VirtualMachine .spec.runStrategy: selfsame-subresources, test',
  // A restore puts the restored claims in place of those that the human named.
  'VirtualMachine .spec.template.spec.volumes: restore-controller, test',
  // What was before goes to the history: of a change by the one, of a restore by the other.
  'VirtualMachineIdentity .status.history: device-map-controller, restore-controller',
];

/** Collections in which our parts meet. */
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
  /** `VirtualMachineInstance .status.phase` */
  readonly name: string;
  /** Whoever owned it at any time. */
  readonly writers: Set<string>;
}

/** The fields of each object, by its uid and their path. */
function followOwners(plane: VmPlane): { readonly fields: ReadonlyMap<string, Field>; stop(): void } {
  const fields = new Map<string, Field>();
  const note = ({ kind, metadata }: KubeObject) => {
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
      for (const { entry } of events) note(decodeStored(entry.bytes));
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
  await plane.ask('restart', 'db');
  const migration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'move' },
  };
  await plane.apply({ ...migration, spec: { vmiName: 'db' } });
  await plane.apply(aSnapshot('then', 'db'));
  await plane.ask('stop', 'db');
  await plane.apply(aRestore('back', 'db', 'then'));
  await plane.ask('start', 'db');
  await plane.drop('VirtualMachine', 'db');
  stop();
  assert.ok(fields.size > 100, 'there are owners at all');
  const shared = [...fields.values()].filter(({ writers }) => writers.size > 1);
  const told = shared.map(({ name, writers }) => `${name}: ${[...writers].toSorted().join(', ')}`);
  assert.deepEqual([...new Set(told)].toSorted(), BY_DESIGN);
});
