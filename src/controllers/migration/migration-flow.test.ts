/** Runs whole migrations, also with a controller that crashes after any of its writes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { INCOMING_NODE_ANNOTATION, LEFTOVER_NODE_ANNOTATION, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { findStateClaim } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { MigrationPlane, type GuestFate } from '#controllers/migration/testing/migration-plane.ts';
import {
  aDiskClaim,
  aMigration,
  aPod,
  aStateClaim,
  aVmi,
  aVolume,
  SOURCE,
  SOURCE_CLAIM,
  TARGET,
  VM_UID,
} from '#controllers/migration/testing/migration-world.ts';
import { launcherPodName } from '#controllers/shared/launcher/launcher-pod.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

const KEY = 'ns/go';
const OWNER = { vmName: 'db', ownerUid: VM_UID };

/** Returns the object as a client sends it. */
function unstored<T extends KubeObject>(object: Stored<T>): T {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

interface Scene {
  readonly fate: GuestFate;
  /** Access mode of the claims of the persistent state. */
  readonly accessMode?: 'ReadWriteOnce' | 'ReadWriteMany';
  /** True if the migration is deleted after its announcement. */
  readonly cancelled?: boolean;
}

function start({ fate, accessMode = 'ReadWriteOnce' }: Scene): MigrationPlane {
  const plane = new MigrationPlane();
  plane.fate = fate;
  const { api } = plane;
  for (const name of [SOURCE, TARGET]) {
    const status = { conditions: [{ type: 'Ready', status: 'True' as const }] };
    api.put(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, status });
  }
  const vmi = api.put(VIRTUAL_MACHINE_INSTANCES, unstored(aVmi()));
  const source = aPod('source', {}, { name: launcherPodName(vmi) });
  const labels = { ...source.metadata.labels, 'kubevirt.io/created-by': vmi.metadata.uid };
  api.put(PODS, unstored({ ...source, metadata: { ...source.metadata, labels } }));
  const state = aStateClaim('source');
  api.put(PERSISTENT_VOLUME_CLAIMS, unstored({ ...state, spec: { ...state.spec, accessModes: [accessMode] } }));
  api.put(PERSISTENT_VOLUME_CLAIMS, unstored(aDiskClaim()));
  api.put(PERSISTENT_VOLUMES, unstored(aVolume()));
  api.put(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, unstored(aMigration()));
  return plane;
}

/** Asserts after every write that exactly one claim holds the state; returns the names of these claims in order. */
function watchState(plane: MigrationPlane): () => readonly string[] {
  const seen: string[] = [];
  plane.onWrite = () => {
    const name = findStateClaim(plane.api.all(PERSISTENT_VOLUME_CLAIMS), OWNER)?.metadata.name;
    assert(name !== undefined, 'the VM has no state');
    if (seen.at(-1) !== name) seen.push(name);
  };
  return () => seen;
}

async function run(scene: Scene, crashAfter = Infinity): Promise<{ plane: MigrationPlane; seen: readonly string[] }> {
  const plane = start(scene);
  const seen = watchState(plane);
  plane.crashAfter(crashAfter);
  if (scene.cancelled === true) {
    plane.fate = 'silent';
    await plane.settle();
    plane.api.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, KEY);
    plane.fate = scene.fate;
  }
  await plane.settle();
  return { plane, seen: seen() };
}

/** Returns the final objects, without the fields that differ between runs. */
function endOf({ api }: MigrationPlane): unknown {
  const kinds = [
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
  ];
  return kinds.map((type) =>
    api.all<KubeObject>(type).map(({ metadata, spec, status }) => ({
      name: metadata.name,
      labels: metadata.labels,
      annotations: metadata.annotations,
      finalizers: metadata.finalizers ?? [],
      spec,
      status,
    })),
  );
}

const volumeNodes = ({ api }: MigrationPlane) => {
  const { annotations = {} } = api.peek(PERSISTENT_VOLUMES, 'pv-root')?.metadata ?? {};
  return [VOLUME_NODE_ANNOTATION, INCOMING_NODE_ANNOTATION, LEFTOVER_NODE_ANNOTATION].map((key) => annotations[key]);
};
const claimNames = ({ api }: MigrationPlane) => api.all(PERSISTENT_VOLUME_CLAIMS).map(({ metadata }) => metadata.name);
const podNodes = ({ api }: MigrationPlane) => api.all(PODS).map(({ spec }) => spec.nodeName);

interface End extends Scene {
  readonly phase: 'Succeeded' | 'Failed';
}

const scenes: Record<string, End> = {
  'M1: a guest that moves': { fate: 'commits', phase: 'Succeeded' },
  'M3: a guest that moves, with a claim that both nodes could use': {
    fate: 'commits',
    accessMode: 'ReadWriteMany',
    phase: 'Succeeded',
  },
  'M2: a guest that cannot move': { fate: 'fails', phase: 'Failed' },
  'M4: a guest that cannot move, with a claim that both nodes could use': {
    fate: 'fails',
    accessMode: 'ReadWriteMany',
    phase: 'Failed',
  },
  'M10: a guest that ends during the migration': { fate: 'guest-ends', phase: 'Failed' },
  'M14: a migration that is cancelled in time': { fate: 'commits', cancelled: true, phase: 'Failed' },
};

for (const [sentence, scene] of Object.entries(scenes)) {
  describe(sentence, () => {
    test('ends in the expected state', async () => {
      const { plane, seen } = await run(scene);
      const { api } = plane;
      const moves = scene.phase === 'Succeeded';
      const migration = api.peek(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, KEY);
      assert.equal(migration?.status?.phase, scene.cancelled === true ? undefined : scene.phase);
      assert.deepEqual(migration?.metadata.finalizers ?? [], []);
      const { migrationState, nodeName } = api.peek(VIRTUAL_MACHINE_INSTANCES, 'ns/db')?.status ?? {};
      assert.deepEqual([migrationState?.completed, migrationState?.failed], [true, moves ? undefined : true]);
      assert.equal(nodeName, moves ? TARGET : SOURCE);
      assert.deepEqual(podNodes(plane), [moves ? TARGET : SOURCE]);
      assert.deepEqual(volumeNodes(plane), moves ? [TARGET, undefined, SOURCE] : [SOURCE, undefined, TARGET]);
      const { sourcePersistentStatePVCName: source, targetPersistentStatePVCName: target } = migrationState ?? {};
      assert.notEqual(source, target);
      assert.deepEqual(claimNames(plane).toSorted(), ['db-root', moves ? target : source]);
      // No other claim held the state meanwhile, and it did not move back.
      assert.deepEqual(seen, moves ? [SOURCE_CLAIM, target] : [SOURCE_CLAIM]);
      const reasons = plane.events.map(({ reason }) => reason);
      assert.equal(reasons.filter((reason) => reason === 'SuccessfulMigration').length, moves ? 1 : 0);
    });

    test('ends in the same state if the controller crashes after any write', async () => {
      const undisturbed = await run(scene);
      const want = endOf(undisturbed.plane);
      const { writes } = undisturbed.plane;
      assert(writes > 8, `only ${writes} writes`);
      for (let n = 1; n <= writes; n++) {
        const { plane, seen } = await run(scene, n);
        assert.deepEqual(endOf(plane), want, `crash after write ${n}`);
        assert.deepEqual(seen, undisturbed.seen, `crash after write ${n}`);
      }
    });
  });
}

test('removes nothing while no agent reports the outcome', async () => {
  const plane = start({ fate: 'silent' });
  await plane.settle();
  const lost = { conditions: [{ type: 'Ready', status: 'Unknown' as const }] };
  plane.api.update(NODES, { ...plane.api.get(NODES, SOURCE), status: lost }, { subresource: 'status' });
  await plane.settle();
  const migration = plane.api.peek(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, KEY);
  assert.equal(migration?.status?.conditions?.[0]?.type, 'ManualRecoveryRequired');
  assert.equal(claimNames(plane).length, 3);
  assert.equal(podNodes(plane).length, 2);
  plane.fate = 'commits';
  await plane.settle();
  assert.equal(plane.api.peek(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, KEY)?.status?.phase, 'Succeeded');
});

test('each of two migrations puts the state into a new claim', async () => {
  const { plane } = await run({ fate: 'commits' });
  const { api } = plane;
  const first = claimNames(plane);
  const volume = api.get(PERSISTENT_VOLUMES, 'pv-root');
  // The agent of the source does this when it has removed its copy.
  const { [LEFTOVER_NODE_ANNOTATION]: _, ...annotations } = volume.metadata.annotations ?? {};
  api.update(PERSISTENT_VOLUMES, { ...volume, metadata: { ...volume.metadata, annotations } });
  api.put(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, unstored(aMigration(undefined, { name: 'back' })));
  await plane.settle();
  assert.equal(api.peek(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, 'ns/back')?.status?.phase, 'Succeeded');
  assert.equal(claimNames(plane).length, 2);
  assert.notDeepEqual(claimNames(plane), first);
  assert.equal(api.all(PODS).length, 1);
});
