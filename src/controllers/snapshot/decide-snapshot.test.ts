import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VM_SNAPSHOT_CONTENT_FINALIZER, VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, type VmSnapshotStatus } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { buildVmSnapshotContent } from '#controllers/snapshot/build-content.ts';
import { decideSnapshot } from '#controllers/snapshot/decide-snapshot.ts';
import { SnapshotPlane } from '#controllers/snapshot/testing/snapshot-plane.ts';
import {
  aClaim,
  aClass,
  aPersistentVolume,
  aRestore,
  aSnapshot,
  aVm,
  aVmi,
  CREATED,
  CREATED_MS,
  DELETED,
  ROOT,
} from '#controllers/snapshot/testing/snapshot-world.ts';
import type { HeldVm, SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { findCondition } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CLASSES } from '#kube/volume-snapshot-kinds.ts';
import type { Change } from '#runtime/plan.ts';

const held: HeldVm = { vm: aVm(), volumes: [] };
const online: HeldVm = { ...held, vmi: aVmi('Running') };
const waitsForClaim: HeldVm = { ...held, volumes: [{ volume: ROOT }] };

function aContent(
  status?: VirtualMachineSnapshotContent['status'],
  { of = held, metadata = {} }: { of?: HeldVm; metadata?: ObjectMeta } = {},
): Stored<VirtualMachineSnapshotContent> {
  const built = buildVmSnapshotContent(aSnapshot(), of);
  const name = built.metadata.name ?? '';
  const server = { name, uid: 'content-uid', resourceVersion: '1', creationTimestamp: CREATED };
  return { ...built, metadata: { ...built.metadata, ...server, ...metadata, name, uid: 'content-uid' }, status };
}

const READY = { creationTime: CREATED, readyToUse: true };
const BROKEN = { readyToUse: false, error: { time: CREATED, message: 'disk is full' } };
const IN_PROGRESS: VmSnapshotStatus = {
  phase: 'InProgress',
  sourceUID: 'vm-uid',
  virtualMachineSnapshotContentName: 'vmsnapshot-content-snap-uid',
};
const TAKEN: VmSnapshotStatus = { ...IN_PROGRESS, phase: 'Succeeded', readyToUse: true, creationTime: CREATED };
const FAILED: VmSnapshotStatus = { phase: 'Failed', readyToUse: false };
const LATE = CREATED_MS + 300_000;

interface Case {
  readonly world: Partial<SnapshotWorld>;
  readonly want: string[];
  readonly phase?: string;
  /** Message of Failure if set, else of Progressing while in progress, else of Ready. */
  readonly message?: string;
  readonly requeueAfterMs?: number;
}

const describeChange = (change: Change): string => `${change.do} ${change.type.kind}`;
const CREATE_CONTENT = ['create VirtualMachineSnapshotContent'];
const DELETE_CONTENT = ['delete VirtualMachineSnapshotContent'];
const PATCH_SNAPSHOT = ['patch VirtualMachineSnapshot'];
const WITH_TPM = { domain: { devices: { tpm: { persistent: true } } } };
const vmWithState = { ...aVm(), spec: { ...aVm().spec, template: { spec: WITH_TPM } } };
const unbound = aClaim('persistent-state-for-db-x', 'Pending');
const restoredState = { ...unbound, spec: { ...unbound.spec, dataSource: { kind: 'VolumeSnapshot', name: 'old' } } };
const inProgress = { phase: 'InProgress', requeueAfterMs: 300_000 };
const failed = { phase: 'Failed', requeueAfterMs: undefined };

const cases: Record<string, Case> = {
  'gets its finalizer first': {
    world: { snapshot: aSnapshot({}, undefined, { finalizers: ['other'] }), vm: aVm(), held },
    want: PATCH_SNAPSHOT,
  },
  'waits for its VM': { world: {}, want: [], ...inProgress, message: 'Source does not exist' },
  'waits until its VM is held': {
    world: { vm: aVm() },
    want: [],
    ...inProgress,
    message: 'Source not locked and prepared',
  },
  'waits for a missing claim and names it': {
    world: { vm: aVm(), held: waitsForClaim },
    want: [],
    ...inProgress,
    message: 'PersistentVolumeClaim "root-claim" does not exist',
  },
  'creates the content when the VM is held': {
    world: { vm: aVm(), held },
    want: CREATE_CONTENT,
    ...inProgress,
    message: 'Source locked',
  },
  'is taken without state if the VM never ran': {
    world: { vm: vmWithState, held: { ...held, vm: vmWithState } },
    want: CREATE_CONTENT,
    ...inProgress,
    message: 'Source locked',
  },
  'waits for a state claim that is being restored': {
    world: { vm: vmWithState, held: { ...held, vm: vmWithState, state: { claim: restoredState } } },
    want: [],
    ...inProgress,
    message: 'PersistentVolumeClaim "persistent-state-for-db-x" is not bound',
  },
  'waits for the copies': {
    world: { vm: aVm(), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent() },
    want: [],
    ...inProgress,
    message: 'Source locked and operation in progress',
  },
  'waits after an error of a stopped VM': {
    world: { vm: aVm(), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent(BROKEN) },
    want: [],
    ...inProgress,
    message: 'disk is full',
  },
  'fails after an error of a running VM': {
    world: { vm: aVm(), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent(BROKEN, { of: online }) },
    want: DELETE_CONTENT,
    ...failed,
    message: 'disk is full',
  },
  'fails at the deadline without a VM': {
    world: { now: LATE },
    want: [],
    ...failed,
    message: 'snapshot deadline exceeded: Source does not exist',
  },
  'fails at the deadline if the VM is held just then': {
    world: { vm: aVm(), held, now: LATE },
    want: [],
    ...failed,
    message: 'snapshot deadline exceeded',
  },
  'fails at the deadline before the copies have a point in time': {
    world: { vm: aVm(), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent(), now: LATE },
    want: DELETE_CONTENT,
    ...failed,
    message: 'snapshot deadline exceeded: Source locked and operation in progress',
  },
  'has no deadline once the point in time of the copies is fixed': {
    world: {
      vm: aVm(),
      snapshot: aSnapshot({}, IN_PROGRESS),
      content: aContent({ creationTime: '2026-01-01T12:00:00Z' }, { of: online }),
      now: LATE,
    },
    want: [],
    phase: 'InProgress',
    message: 'Source locked and operation in progress',
  },
  'succeeds if the content is ready at the deadline': {
    world: { vm: aVm(), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent(READY), now: LATE },
    want: [],
    phase: 'Succeeded',
    message: 'Operation complete',
  },
  'uses its own deadline': {
    world: { snapshot: aSnapshot({ failureDeadline: '1m30s' }) },
    want: [],
    requeueAfterMs: 90_000,
  },
  'has no deadline if it is 0': {
    world: { snapshot: aSnapshot({ failureDeadline: '0' }), now: LATE },
    want: [],
    phase: 'InProgress',
  },
  'fails if the VM was replaced': {
    world: { vm: aVm([], {}, { uid: 'another' }), snapshot: aSnapshot({}, { sourceUID: 'vm-uid' }) },
    want: [],
    ...failed,
    message: 'Source was replaced by another VirtualMachine of the same name',
  },
  'fails if the VM was replaced while its disks are copied': {
    world: { vm: aVm([], {}, { uid: 'another' }), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent() },
    want: DELETE_CONTENT,
    ...failed,
    message: 'Source was replaced by another VirtualMachine of the same name',
  },
  'fails if the VM was deleted before the content was created': {
    world: { snapshot: aSnapshot({}, { sourceUID: 'vm-uid' }) },
    want: [],
    ...failed,
    message: 'Source does not exist any more',
  },
  'continues if the VM was deleted while its disks are copied': {
    world: { snapshot: aSnapshot({}, IN_PROGRESS), content: aContent() },
    want: [],
    ...inProgress,
  },
  'fails if the content is being deleted before it is ready': {
    world: { vm: aVm(), snapshot: aSnapshot({}, IN_PROGRESS), content: aContent({}, { metadata: DELETED }) },
    want: [],
    ...failed,
    message: 'VirtualMachineSnapshotContent was deleted',
  },
  'fails if the content was deleted before it was ready': {
    world: { vm: aVm(), held, snapshot: aSnapshot({}, IN_PROGRESS) },
    want: [],
    ...failed,
    message: 'VirtualMachineSnapshotContent does not exist',
  },
  'reports a content that was deleted later': {
    world: { snapshot: aSnapshot({}, TAKEN) },
    want: [],
    phase: 'Succeeded',
    message: 'VirtualMachineSnapshotContent does not exist',
  },
  'reports a content that is no longer ready': {
    world: { snapshot: aSnapshot({}, TAKEN), content: aContent(BROKEN) },
    want: [],
    phase: 'Succeeded',
    message: 'disk is full',
  },
  'does nothing after a failure': { world: { snapshot: aSnapshot({}, FAILED) }, want: [] },
  'deletes the content after a failure': {
    world: { snapshot: aSnapshot({}, FAILED), content: aContent() },
    want: DELETE_CONTENT,
  },
  'stays failed even if the content is ready': {
    world: { snapshot: aSnapshot({}, FAILED), content: aContent(READY) },
    want: DELETE_CONTENT,
  },
  'deletes the content when deleted': {
    world: { snapshot: aSnapshot({}, TAKEN, DELETED), content: aContent(READY) },
    want: DELETE_CONTENT,
    phase: 'Deleting',
    message: 'VM snapshot is deleting',
  },
  'waits for the deletion of the content when deleted': {
    world: { snapshot: aSnapshot({}, TAKEN, DELETED), content: aContent(READY, { metadata: DELETED }) },
    want: [],
    phase: 'Deleting',
  },
  'removes its finalizer when deleted without a content': {
    world: { snapshot: aSnapshot({}, TAKEN, DELETED) },
    want: PATCH_SNAPSHOT,
  },
  'removes its finalizer when deleted with the policy Retain': {
    world: { snapshot: aSnapshot({ deletionPolicy: 'Retain' }, TAKEN, DELETED), content: aContent(READY) },
    want: PATCH_SNAPSHOT,
  },
  'waits for a restore when deleted with the policy Retain': {
    world: {
      snapshot: aSnapshot({ deletionPolicy: 'Retain' }, TAKEN, DELETED),
      content: aContent(READY),
      hasRestore: true,
    },
    want: [],
    phase: 'Deleting',
  },
  'deletes an incomplete content when deleted with the policy Retain': {
    world: { snapshot: aSnapshot({ deletionPolicy: 'Retain' }, IN_PROGRESS, DELETED), content: aContent(READY) },
    want: DELETE_CONTENT,
    phase: 'Deleting',
  },
  'does nothing when deleted without its finalizer': {
    world: { snapshot: aSnapshot({}, TAKEN, { ...DELETED, finalizers: ['other'] }) },
    want: [],
  },
};

function aWorld(world: Partial<SnapshotWorld>): SnapshotWorld {
  return { snapshot: aSnapshot(), hasRestore: false, now: CREATED_MS, ...world };
}

for (const [sentence, { world, want, message, ...plan }] of Object.entries(cases)) {
  test(sentence, () => {
    const { changes, status, requeueAfterMs } = decideSnapshot(aWorld(world));
    assert.deepEqual(changes.map(describeChange), want);
    const { phase, conditions = [], readyToUse, error } = (status ?? {}) as VmSnapshotStatus;
    if ('phase' in plan) assert.equal(phase, plan.phase);
    if ('requeueAfterMs' in plan) assert.equal(requeueAfterMs, plan.requeueAfterMs);
    const failure = findCondition(conditions, 'Failure');
    if (message !== undefined) {
      const condition =
        phase === 'InProgress' ? findCondition(conditions, 'Progressing') : findCondition(conditions, 'Ready');
      assert.equal((failure ?? condition)?.message, message);
    }
    assert.equal(failure?.status, phase === 'Failed' ? 'True' : undefined);
    if (phase === 'Failed') assert.deepEqual([readyToUse, error?.message], [false, message]);
  });
}

test('keeps the finalizers of other controllers', () => {
  const snapshot = aSnapshot({}, TAKEN, { ...DELETED, finalizers: ['a', VM_SNAPSHOT_FINALIZER, 'b'] });
  const [change] = decideSnapshot(aWorld({ snapshot })).changes;
  assert.deepEqual(change?.do === 'patch' && change.patch.body, {
    metadata: { resourceVersion: '1', finalizers: ['a', 'b'] },
  });
});

test('an unchanged status has no new timestamps and no Events', () => {
  const snapshot = aSnapshot({}, TAKEN);
  const once = decideSnapshot(aWorld({ snapshot })).status as VmSnapshotStatus;
  const again = decideSnapshot(aWorld({ snapshot: aSnapshot({}, once), now: LATE }));
  assert.deepEqual([again.status, again.events], [once, []]);
});

/** Builds a plane with a complete snapshot of a VM with one disk. */
async function takenPlane(): Promise<SnapshotPlane> {
  const plane = new SnapshotPlane([
    [VIRTUAL_MACHINES, aVm([ROOT])],
    [PERSISTENT_VOLUME_CLAIMS, aClaim('root-claim')],
    [PERSISTENT_VOLUMES, aPersistentVolume('root-claim')],
    [VOLUME_SNAPSHOT_CLASSES, aClass('copies')],
    [VIRTUAL_MACHINE_SNAPSHOTS, aSnapshot()],
  ]);
  await plane.settle();
  plane.report({ creationTime: CREATED, readyToUse: true });
  await plane.settle();
  return plane;
}

test('a content that a restore needs is deleted after the restore, and then the snapshot', async () => {
  const plane = await takenPlane();
  plane.put(VIRTUAL_MACHINE_RESTORES, aRestore());
  plane.delete(VIRTUAL_MACHINE_SNAPSHOTS, 'snap');
  await plane.settle();
  assert.equal(plane.snapshot?.status?.phase, 'Deleting');
  assert.deepEqual(plane.content?.metadata.finalizers, [VM_SNAPSHOT_CONTENT_FINALIZER]);
  assert.equal(plane.copies.length, 1);
  plane.put(VIRTUAL_MACHINE_RESTORES, aRestore({ complete: true }));
  await plane.settle();
  assert.deepEqual([plane.snapshot, plane.content, plane.copies], [undefined, undefined, []]);
});

test('a restore does not keep an incomplete content: it waits for the VM, which that snapshot holds', async () => {
  const plane = new SnapshotPlane([
    [VIRTUAL_MACHINES, aVm([ROOT])],
    [PERSISTENT_VOLUME_CLAIMS, aClaim('root-claim')],
    [PERSISTENT_VOLUMES, aPersistentVolume('root-claim')],
    [VOLUME_SNAPSHOT_CLASSES, aClass('copies')],
    [VIRTUAL_MACHINE_SNAPSHOTS, aSnapshot()],
    [VIRTUAL_MACHINE_RESTORES, aRestore()],
  ]);
  await plane.settle();
  assert.notEqual(plane.content, undefined);
  plane.delete(VIRTUAL_MACHINE_SNAPSHOTS, 'snap');
  await plane.settle();
  assert.deepEqual([plane.snapshot, plane.content, plane.copies], [undefined, undefined, []]);
});

test('a snapshot reports that its content was deleted', async () => {
  const plane = await takenPlane();
  plane.delete(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, 'vmsnapshot-content-snap-uid');
  await plane.settle();
  const { phase, readyToUse, error } = plane.snapshot?.status ?? {};
  assert.deepEqual(
    [phase, readyToUse, error?.message],
    ['Succeeded', false, 'VirtualMachineSnapshotContent does not exist'],
  );
  assert.equal(plane.content, undefined);
});

test('a snapshot is unusable after a copy was deleted, which is not created again', async () => {
  const plane = await takenPlane();
  plane.deleteCopy('vmsnapshot-snap-uid-volume-root');
  await plane.settle();
  const { phase, readyToUse, creationTime, error } = plane.snapshot?.status ?? {};
  const message = 'VolumeSnapshot vmsnapshot-snap-uid-volume-root does not exist';
  assert.deepEqual([phase, readyToUse, creationTime, error?.message], ['Succeeded', false, CREATED, message]);
  assert.equal(plane.copies.length, 0);
});

test('a content gets back a finalizer that a user removed', async () => {
  const plane = await takenPlane();
  const content = plane.content!;
  plane.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
    ...content,
    metadata: { ...content.metadata, finalizers: ['other'] },
  });
  await plane.settle();
  assert.deepEqual(plane.content?.metadata.finalizers, ['other', VM_SNAPSHOT_CONTENT_FINALIZER]);
});
