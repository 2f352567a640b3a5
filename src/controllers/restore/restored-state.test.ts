/**
 * Tests the persistent state in restores: exactly one claim holds it at any time, and in the end it is the restored
 * one.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findStateClaim, stateClaimName, stateOwnerOf, stateSuffixOf } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { RestorePlane } from '#controllers/restore/testing/restore-plane.ts';
import {
  aClaim,
  aContent,
  aRestore,
  aSnapshot,
  aVm,
  aVolumeSnapshot,
  UUID,
} from '#controllers/restore/testing/restore-world.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { KubeObject, ObjectMeta, Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';

const MARKS: ObjectMeta = {
  labels: { 'persistent-state-for': 'db', 'kubevirt.io/migrationName': 'm' },
  annotations: { 'persistent-state-for-db': 'true', 'selfsame.io/supersedes': 'older', note: 'kept' },
};

function contentWithState(): Stored<VirtualMachineSnapshotContent> {
  const content = aContent();
  const backup = {
    volumeName: 'persistent-state-for-db',
    volumeSnapshotName: 'vs-state',
    persistentVolumeClaim: {
      metadata: { name: 'persistent-state-for-db-aaaaa', uid: 'the-state-of-then', ...MARKS },
      spec: { storageClassName: 'fast', resources: { requests: { storage: '10Mi' } } },
    },
  };
  return { ...content, spec: { ...content.spec, volumeBackups: [...(content.spec.volumeBackups ?? []), backup] } };
}

interface Scene {
  readonly hasState?: boolean;
  readonly target?: string;
  readonly spec?: Partial<VirtualMachineRestore['spec']>;
  /** The state of the existing VM `db`, or that it does not exist. */
  readonly now?: 'no VM' | 'no state' | 'state' | 'state without an owner';
}

function startRestore({ hasState = true, target, spec, now = 'state' }: Scene): RestorePlane {
  const plane = new RestorePlane();
  const { api } = plane;
  api.put(VIRTUAL_MACHINE_SNAPSHOTS, unstored(aSnapshot()));
  api.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, unstored(hasState ? contentWithState() : aContent()));
  for (const name of ['vs-root', 'vs-state']) {
    const snapshot = aVolumeSnapshot('1Mi');
    api.put(VOLUME_SNAPSHOTS, unstored({ ...snapshot, metadata: { ...snapshot.metadata, name } }));
  }
  if (now !== 'no VM') {
    const vm = api.put(VIRTUAL_MACHINES, unstored(aVm({ firmware: { uuid: UUID } })));
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: vm.metadata.uid };
    const ownerReferences = now === 'state' ? [{ ...owner, controller: true }] : undefined;
    const { uid: _, ...metadata } = { ...aClaim().metadata, ...MARKS, name: 'persistent-state-for-db-bbbbb' };
    if (now !== 'no state')
      api.put(PERSISTENT_VOLUME_CLAIMS, unstored({ ...aClaim(), metadata: { ...metadata, uid: '', ownerReferences } }));
  }
  api.put(VIRTUAL_MACHINE_RESTORES, unstored(aRestore({ target, spec, metadata: { finalizers: undefined } })));
  return plane;
}

function unstored<T extends KubeObject>(object: Stored<T>): T {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

const claimsOf = ({ api }: RestorePlane): Stored<PersistentVolumeClaim>[] => api.all(PERSISTENT_VOLUME_CLAIMS);
const vmOf = ({ api }: RestorePlane, name: string): Stored<VirtualMachine> | undefined =>
  api.peek(VIRTUAL_MACHINES, `ns/${name}`);
const restoreOf = ({ api }: RestorePlane) => api.peek(VIRTUAL_MACHINE_RESTORES, 'ns/back')!;
const stateOf = (plane: RestorePlane, name: string) => {
  const vm = vmOf(plane, name);
  return vm && findStateClaim(claimsOf(plane), stateOwnerOf(vm))?.metadata.name;
};
const restoredName = (plane: RestorePlane, vm: string) =>
  stateClaimName(vm, stateSuffixOf(restoreOf(plane).metadata.uid));

const OLD = 'persistent-state-for-db-bbbbb';
const scenes: Record<string, { scene: Scene; target: string; leaves: string[] }> = {
  'replaces the state of the VM, which is deleted': { scene: {}, target: 'db', leaves: [] },
  'replaces the state also if disks are restored in place': {
    scene: { spec: { volumeRestorePolicy: 'InPlace' } },
    target: 'db',
    leaves: [],
  },
  'belongs to the VM also if its disks have no owner': {
    scene: { spec: { volumeOwnershipPolicy: 'None' } },
    target: 'db',
    leaves: [],
  },
  'leaves a claim that a user provided, without its marks': {
    scene: { now: 'state without an owner' },
    target: 'db',
    leaves: [OLD],
  },
  'is added to a VM without state': { scene: { now: 'no state' }, target: 'db', leaves: [] },
  'is added to a VM that was deleted': { scene: { now: 'no VM' }, target: 'db', leaves: [] },
  'is copied for a VM of another name': { scene: { target: 'copy' }, target: 'copy', leaves: [OLD] },
};

describe('restored state', () => {
  for (const [sentence, { scene, target, leaves }] of Object.entries(scenes)) {
    it(`${sentence}, with a crash after any write`, async () => {
      const whole = startRestore(scene);
      await whole.settle();
      for (let writes = 0; writes <= whole.writes; writes++) {
        const plane = startRestore(scene);
        const old = stateOf(plane, 'db');
        const assertState = () => {
          const found = stateOf(plane, 'db');
          const allowed = target === 'db' ? [old, restoredName(plane, 'db')] : [old];
          assert.ok(allowed.includes(found), `after write ${writes} the state is ${found}`);
        };
        plane.onCrash = assertState;
        if (writes > 0) plane.crashAfter(writes);
        await plane.settle();
        assertState();
        assert.equal(restoreOf(plane).status?.complete, true, JSON.stringify(restoreOf(plane).status));
        assert.equal(stateOf(plane, target), restoredName(plane, target), `crash after write ${writes}`);
        const others = claimsOf(plane).filter(({ metadata }) => metadata.name.startsWith('persistent-state'));
        const left = others.map(({ metadata }) => metadata.name).filter((name) => name !== restoredName(plane, target));
        assert.deepEqual(left, leaves, `crash after write ${writes}`);
      }
    });
  }

  it('has the marks of its VM and none of the snapshot', async () => {
    const plane = startRestore({ target: 'copy' });
    await plane.settle();
    const { metadata, spec } = claimsOf(plane).find(({ metadata: { name } }) => name === restoredName(plane, 'copy'))!;
    assert.deepEqual(metadata.labels, { 'persistent-state-for': 'copy' });
    const { note, ...annotations } = metadata.annotations ?? {};
    assert.equal(note, 'kept');
    assert.deepEqual(
      Object.keys(annotations).filter((key) => !key.startsWith('restore.')),
      ['persistent-state-for-copy'],
    );
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`),
      ['VirtualMachine copy'],
    );
    assert.deepEqual(spec.resources?.requests, { storage: '10Mi' });
    assert.equal((spec.dataSource as { name?: string }).name, 'vs-state');
  });

  it('names the claim that it supersedes', async () => {
    const plane = startRestore({});
    const [old] = claimsOf(plane);
    await plane.settle();
    const claim = claimsOf(plane).find(({ metadata: { name } }) => name === restoredName(plane, 'db'));
    assert.equal(claim?.metadata.annotations?.['selfsame.io/supersedes'], old!.metadata.uid);
  });

  it('is left unchanged by a snapshot without state, and an Event reports it', async () => {
    const plane = startRestore({ hasState: false });
    await plane.settle();
    assert.equal(stateOf(plane, 'db'), OLD);
    const events = plane.events.filter(({ reason }) => reason === 'PersistentStateKept');
    assert.equal(events.length, 1);
    assert.match(events[0]!.message, /Snapshot before has no persistent state.*persistent-state-for-db-bbbbb/);
  });

  it('of a VM of another name is reported as a copy', async () => {
    const copiesOf = async (scene: Scene) => {
      const plane = startRestore(scene);
      await plane.settle();
      return plane.events.filter(({ reason }) => reason === 'PersistentStateCopied').map(({ message }) => message);
    };
    assert.deepEqual(await copiesOf({ target: 'copy' }), [
      'VirtualMachine copy has the TPM keys and EFI variables of VirtualMachine db (snapshot before); ' +
        'for a VM with its own TPM, restore with persistentStatePolicy: Omit',
    ]);
    assert.deepEqual(await copiesOf({}), []);
    assert.deepEqual(await copiesOf({ target: 'copy', hasState: false }), []);
  });

  it('can be omitted: a new VM has none, and an existing one keeps its own', async () => {
    const spec = { persistentStatePolicy: 'Omit' } as const;
    const copy = startRestore({ target: 'copy', spec });
    await copy.settle();
    assert.equal(restoreOf(copy).status?.complete, true);
    assert.equal(stateOf(copy, 'copy'), undefined);
    assert.equal(stateOf(copy, 'db'), OLD);
    assert.deepEqual(
      copy.events.map(({ reason }) => reason).filter((reason) => reason.startsWith('PersistentState')),
      [],
    );
    const back = startRestore({ spec });
    await back.settle();
    assert.equal(stateOf(back, 'db'), OLD);
    const kept = back.events.find(({ reason }) => reason === 'PersistentStateKept');
    assert.match(kept?.message ?? '', /^persistentStatePolicy is Omit: .*persistent-state-for-db-bbbbb/);
  });

  it('of a failed restore is deleted, and the VM keeps its own', async () => {
    const plane = startRestore({});
    plane.invalidKind = 'VirtualMachine';
    await plane.settle();
    assert.equal(restoreOf(plane).status?.complete, false);
    assert.equal(stateOf(plane, 'db'), OLD);
    assert.deepEqual(
      claimsOf(plane).map(({ metadata }) => metadata.name),
      [OLD],
    );
  });
});
