/** The persistent state of a VM in restores: at every moment one claim holds it, and in the end the restored one does. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findState, stateClaimName, stateOwnerOf, stateSuffixOf } from '#api/persistent-state.ts';
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
} from '#controllers/restore/restore-world.fixture.ts';
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
  /** Whether the VM `db` is there; and whose the state is that it has now. */
  readonly now?: 'no VM' | 'no state' | 'state' | 'state without an owner';
}

function begin({ hasState = true, target, spec, now = 'state' }: Scene): RestorePlane {
  const plane = new RestorePlane();
  const { api } = plane;
  api.put(VIRTUAL_MACHINE_SNAPSHOTS, bare(aSnapshot()));
  api.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, bare(hasState ? contentWithState() : aContent()));
  for (const name of ['vs-root', 'vs-state']) {
    const snapshot = aVolumeSnapshot('1Mi');
    api.put(VOLUME_SNAPSHOTS, bare({ ...snapshot, metadata: { ...snapshot.metadata, name } }));
  }
  if (now !== 'no VM') {
    const vm = api.put(VIRTUAL_MACHINES, bare(aVm({ firmware: { uuid: UUID } })));
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: vm.metadata.uid };
    const ownerReferences = now === 'state' ? [{ ...owner, controller: true }] : undefined;
    const { uid: _, ...metadata } = { ...aClaim().metadata, ...MARKS, name: 'persistent-state-for-db-bbbbb' };
    if (now !== 'no state')
      api.put(PERSISTENT_VOLUME_CLAIMS, bare({ ...aClaim(), metadata: { ...metadata, uid: '', ownerReferences } }));
  }
  api.put(VIRTUAL_MACHINE_RESTORES, bare(aRestore({ target, spec, metadata: { finalizers: undefined } })));
  return plane;
}

function bare<T extends KubeObject>(object: Stored<T>): T {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

const claimsOf = ({ api }: RestorePlane): Stored<PersistentVolumeClaim>[] => api.all(PERSISTENT_VOLUME_CLAIMS);
const vmOf = ({ api }: RestorePlane, name: string): Stored<VirtualMachine> | undefined =>
  api.peek(VIRTUAL_MACHINES, `ns/${name}`);
const restoreOf = ({ api }: RestorePlane) => api.peek(VIRTUAL_MACHINE_RESTORES, 'ns/back')!;
const stateOf = (plane: RestorePlane, name: string) => {
  const vm = vmOf(plane, name);
  return vm && findState(claimsOf(plane), stateOwnerOf(vm))?.metadata.name;
};
const restoredName = (plane: RestorePlane, vm: string) =>
  stateClaimName(vm, stateSuffixOf(restoreOf(plane).metadata.uid));

const OLD = 'persistent-state-for-db-bbbbb';
const scenes: Record<string, { scene: Scene; target: string; leaves: string[] }> = {
  'takes the place of what the VM has, which goes': { scene: {}, target: 'db', leaves: [] },
  'also where disks are restored in their place': {
    scene: { spec: { volumeRestorePolicy: 'InPlace' } },
    target: 'db',
    leaves: [],
  },
  "is the VM's also where its disks are nobody's": {
    scene: { spec: { volumeOwnershipPolicy: 'None' } },
    target: 'db',
    leaves: [],
  },
  'leaves a claim to whoever brought it, without its marks': {
    scene: { now: 'state without an owner' },
    target: 'db',
    leaves: [OLD],
  },
  'comes to a VM that has none': { scene: { now: 'no state' }, target: 'db', leaves: [] },
  'comes to a VM that was deleted': { scene: { now: 'no VM' }, target: 'db', leaves: [] },
  'is copied for a VM of another name': { scene: { target: 'copy' }, target: 'copy', leaves: [OLD] },
};

describe('restored state', () => {
  for (const [sentence, { scene, target, leaves }] of Object.entries(scenes)) {
    it(`${sentence}, wherever the controller is cut`, async () => {
      const whole = begin(scene);
      await whole.settle();
      for (let writes = 0; writes <= whole.writes; writes++) {
        const plane = begin(scene);
        const old = stateOf(plane, 'db');
        const seen = () => {
          const found = stateOf(plane, 'db');
          const allowed = target === 'db' ? [old, restoredName(plane, 'db')] : [old];
          assert.ok(allowed.includes(found), `after write ${writes} the state is ${found}`);
        };
        plane.onCut = seen;
        if (writes > 0) plane.cutAfter(writes);
        await plane.settle();
        seen();
        assert.equal(restoreOf(plane).status?.complete, true, JSON.stringify(restoreOf(plane).status));
        assert.equal(stateOf(plane, target), restoredName(plane, target), `cut after write ${writes}`);
        const others = claimsOf(plane).filter(({ metadata }) => metadata.name.startsWith('persistent-state'));
        const left = others.map(({ metadata }) => metadata.name).filter((name) => name !== restoredName(plane, target));
        assert.deepEqual(left, leaves, `cut after write ${writes}`);
      }
    });
  }

  it('has the marks of its VM, and none that it had in the snapshot', async () => {
    const plane = begin({ target: 'copy' });
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

  it('says whose place it took', async () => {
    const plane = begin({});
    const [old] = claimsOf(plane);
    await plane.settle();
    const claim = claimsOf(plane).find(({ metadata: { name } }) => name === restoredName(plane, 'db'));
    assert.equal(claim?.metadata.annotations?.['selfsame.io/supersedes'], old!.metadata.uid);
  });

  it('that a snapshot does not hold stays as it is, and that is told', async () => {
    const plane = begin({ hasState: false });
    await plane.settle();
    assert.equal(stateOf(plane, 'db'), OLD);
    const told = plane.events.filter(({ reason }) => reason === 'PersistentStateKept');
    assert.equal(told.length, 1);
    assert.match(told[0]!.message, /Snapshot before holds no persistent state.*persistent-state-for-db-bbbbb/);
  });

  it('of a restore that fails goes, and the VM keeps what it had', async () => {
    const plane = begin({});
    plane.refused = 'VirtualMachine';
    await plane.settle();
    assert.equal(restoreOf(plane).status?.complete, false);
    assert.equal(stateOf(plane, 'db'), OLD);
    assert.deepEqual(
      claimsOf(plane).map(({ metadata }) => metadata.name),
      [OLD],
    );
  });
});
