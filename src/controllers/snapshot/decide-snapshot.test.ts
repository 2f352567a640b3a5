import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VM_SNAPSHOT_CONTENT_FINALIZER, VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, type SnapshotStatus } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { buildContent } from '#controllers/snapshot/build-content.ts';
import { decideSnapshot } from '#controllers/snapshot/decide-snapshot.ts';
import { SnapshotPlane } from '#controllers/snapshot/snapshot-plane.fixture.ts';
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
} from '#controllers/snapshot/snapshot-world.fixture.ts';
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
  const built = buildContent(aSnapshot(), of);
  const name = built.metadata.name ?? '';
  const server = { name, uid: 'content-uid', resourceVersion: '1', creationTimestamp: CREATED };
  return { ...built, metadata: { ...built.metadata, ...server, ...metadata, name, uid: 'content-uid' }, status };
}

const READY = { creationTime: CREATED, readyToUse: true };
const BROKEN = { readyToUse: false, error: { time: CREATED, message: 'disk is full' } };
const TAKING: SnapshotStatus = {
  phase: 'InProgress',
  sourceUID: 'vm-uid',
  virtualMachineSnapshotContentName: 'vmsnapshot-content-snap-uid',
};
const TAKEN: SnapshotStatus = { ...TAKING, phase: 'Succeeded', readyToUse: true, creationTime: CREATED };
const FAILED: SnapshotStatus = { phase: 'Failed', readyToUse: false };
const LATE = CREATED_MS + 300_000;

interface Case {
  readonly world: Partial<SnapshotWorld>;
  readonly want: string[];
  readonly phase?: string;
  /** Of Failure, else of Ready where that is what matters, else of Progressing. */
  readonly message?: string;
  readonly requeueAfterMs?: number;
}

const shown = (change: Change): string => `${change.do} ${change.type.kind}`;
const MAKE = ['create VirtualMachineSnapshotContent'];
const DROP = ['delete VirtualMachineSnapshotContent'];
const LET_GO = ['patch VirtualMachineSnapshot'];
const KEEPS = { domain: { devices: { tpm: { persistent: true } } } };
const keeper = { ...aVm(), spec: { ...aVm().spec, template: { spec: KEEPS } } };
const unbound = aClaim('persistent-state-for-db-x', 'Pending');
const restoredState = { ...unbound, spec: { ...unbound.spec, dataSource: { kind: 'VolumeSnapshot', name: 'old' } } };
const inProgress = { phase: 'InProgress', requeueAfterMs: 300_000 };
const failed = { phase: 'Failed', requeueAfterMs: undefined };

const cases: Record<string, Case> = {
  'a new one is held first': {
    world: { snapshot: aSnapshot({}, undefined, { finalizers: ['other'] }), vm: aVm(), held },
    want: LET_GO,
  },
  'one without a VM waits for it': { world: {}, want: [], ...inProgress, message: 'Source does not exist' },
  'one whose VM is not held waits for that': {
    world: { vm: aVm() },
    want: [],
    ...inProgress,
    message: 'Source not locked and prepared',
  },
  'one whose claim is missing says which': {
    world: { vm: aVm(), held: waitsForClaim },
    want: [],
    ...inProgress,
    message: 'PersistentVolumeClaim "root-claim" does not exist',
  },
  'one whose VM is held is taken': { world: { vm: aVm(), held }, want: MAKE, ...inProgress, message: 'Source locked' },
  'one of a VM that keeps state and never ran is taken without': {
    world: { vm: keeper, held: { ...held, vm: keeper } },
    want: MAKE,
    ...inProgress,
    message: 'Source locked',
  },
  'one of a VM whose state is still to come waits': {
    world: { vm: keeper, held: { ...held, vm: keeper, state: { claim: restoredState } } },
    want: [],
    ...inProgress,
    message: 'PersistentVolumeClaim "persistent-state-for-db-x" is not bound',
  },
  'one that is copied is waited for': {
    world: { vm: aVm(), snapshot: aSnapshot({}, TAKING), content: aContent() },
    want: [],
    ...inProgress,
    message: 'Source locked and operation in progress',
  },
  'an error while nobody runs is waited for': {
    world: { vm: aVm(), snapshot: aSnapshot({}, TAKING), content: aContent(BROKEN) },
    want: [],
    ...inProgress,
    message: 'disk is full',
  },
  'an error while the guest runs is the end': {
    world: { vm: aVm(), snapshot: aSnapshot({}, TAKING), content: aContent(BROKEN, { of: online }) },
    want: DROP,
    ...failed,
    message: 'disk is full',
  },
  'the deadline of one without a VM': {
    world: { now: LATE },
    want: [],
    ...failed,
    message: 'snapshot deadline exceeded: Source does not exist',
  },
  'the deadline of one whose VM was held just then': {
    world: { vm: aVm(), held, now: LATE },
    want: [],
    ...failed,
    message: 'snapshot deadline exceeded',
  },
  'the deadline of one that is copied': {
    world: { vm: aVm(), snapshot: aSnapshot({}, TAKING), content: aContent(), now: LATE },
    want: DROP,
    ...failed,
    message: 'snapshot deadline exceeded: Source locked and operation in progress',
  },
  'no deadline for one whose disks are as they are to be, and are written down': {
    world: {
      vm: aVm(),
      snapshot: aSnapshot({}, TAKING),
      content: aContent({ creationTime: '2026-01-01T12:00:00Z' }, { of: online }),
      now: LATE,
    },
    want: [],
    phase: 'InProgress',
    message: 'Source locked and operation in progress',
  },
  'one that is ready when its deadline comes is ready': {
    world: { vm: aVm(), snapshot: aSnapshot({}, TAKING), content: aContent(READY), now: LATE },
    want: [],
    phase: 'Succeeded',
    message: 'Operation complete',
  },
  'a deadline of its own': {
    world: { snapshot: aSnapshot({ failureDeadline: '1m30s' }) },
    want: [],
    requeueAfterMs: 90_000,
  },
  'a deadline of 0 never comes': {
    world: { snapshot: aSnapshot({ failureDeadline: '0' }), now: LATE },
    want: [],
    phase: 'InProgress',
  },
  'a VM that was replaced': {
    world: { vm: aVm([], {}, { uid: 'another' }), snapshot: aSnapshot({}, { sourceUID: 'vm-uid' }) },
    want: [],
    ...failed,
    message: 'Source was replaced by another VirtualMachine of the same name',
  },
  'a VM that was replaced while its disks are copied': {
    world: { vm: aVm([], {}, { uid: 'another' }), snapshot: aSnapshot({}, TAKING), content: aContent() },
    want: DROP,
    ...failed,
    message: 'Source was replaced by another VirtualMachine of the same name',
  },
  'a VM that is gone before anything was made': {
    world: { snapshot: aSnapshot({}, { sourceUID: 'vm-uid' }) },
    want: [],
    ...failed,
    message: 'Source does not exist any more',
  },
  'a VM that is gone while its disks are copied does not matter': {
    world: { snapshot: aSnapshot({}, TAKING), content: aContent() },
    want: [],
    ...inProgress,
  },
  'a content that somebody deletes too early': {
    world: { vm: aVm(), snapshot: aSnapshot({}, TAKING), content: aContent({}, { metadata: DELETED }) },
    want: [],
    ...failed,
    message: 'VirtualMachineSnapshotContent was deleted',
  },
  'a content that is gone too early is not made again': {
    world: { vm: aVm(), held, snapshot: aSnapshot({}, TAKING) },
    want: [],
    ...failed,
    message: 'VirtualMachineSnapshotContent does not exist',
  },
  'a content that is gone later': {
    world: { snapshot: aSnapshot({}, TAKEN) },
    want: [],
    phase: 'Succeeded',
    message: 'VirtualMachineSnapshotContent does not exist',
  },
  'a content that is no longer ready': {
    world: { snapshot: aSnapshot({}, TAKEN), content: aContent(BROKEN) },
    want: [],
    phase: 'Succeeded',
    message: 'disk is full',
  },
  'what failed has nothing left to do': { world: { snapshot: aSnapshot({}, FAILED) }, want: [] },
  'what failed lets go of what it made': {
    world: { snapshot: aSnapshot({}, FAILED), content: aContent() },
    want: DROP,
  },
  'what failed stays failed': { world: { snapshot: aSnapshot({}, FAILED), content: aContent(READY) }, want: DROP },
  'a deleted one takes its content with it': {
    world: { snapshot: aSnapshot({}, TAKEN, DELETED), content: aContent(READY) },
    want: DROP,
    phase: 'Deleting',
    message: 'VM snapshot is deleting',
  },
  'a deleted one waits for its content': {
    world: { snapshot: aSnapshot({}, TAKEN, DELETED), content: aContent(READY, { metadata: DELETED }) },
    want: [],
    phase: 'Deleting',
  },
  'a deleted one without a content goes': { world: { snapshot: aSnapshot({}, TAKEN, DELETED) }, want: LET_GO },
  'a deleted one that keeps its content goes': {
    world: { snapshot: aSnapshot({ deletionPolicy: 'Retain' }, TAKEN, DELETED), content: aContent(READY) },
    want: LET_GO,
  },
  'a deleted one that keeps its content waits for the restore that finds it by its name': {
    world: {
      snapshot: aSnapshot({ deletionPolicy: 'Retain' }, TAKEN, DELETED),
      content: aContent(READY),
      isRestored: true,
    },
    want: [],
    phase: 'Deleting',
  },
  'a deleted one that never was whole keeps nothing': {
    world: { snapshot: aSnapshot({ deletionPolicy: 'Retain' }, TAKING, DELETED), content: aContent(READY) },
    want: DROP,
    phase: 'Deleting',
  },
  'a deleted one that is none of ours any more is left alone': {
    world: { snapshot: aSnapshot({}, TAKEN, { ...DELETED, finalizers: ['other'] }) },
    want: [],
  },
};

function aWorld(world: Partial<SnapshotWorld>): SnapshotWorld {
  return { snapshot: aSnapshot(), isRestored: false, now: CREATED_MS, ...world };
}

for (const [sentence, { world, want, message, ...plan }] of Object.entries(cases)) {
  test(sentence, () => {
    const { changes, status, requeueAfterMs } = decideSnapshot(aWorld(world));
    assert.deepEqual(changes.map(shown), want);
    const { phase, conditions = [], readyToUse, error } = (status ?? {}) as SnapshotStatus;
    if ('phase' in plan) assert.equal(phase, plan.phase);
    if ('requeueAfterMs' in plan) assert.equal(requeueAfterMs, plan.requeueAfterMs);
    const failure = findCondition(conditions, 'Failure');
    if (message !== undefined) {
      const telling =
        phase === 'InProgress' ? findCondition(conditions, 'Progressing') : findCondition(conditions, 'Ready');
      assert.equal((failure ?? telling)?.message, message);
    }
    assert.equal(failure?.status, phase === 'Failed' ? 'True' : undefined);
    if (phase === 'Failed') assert.deepEqual([readyToUse, error?.message], [false, message]);
  });
}

test('finalizers of others stay', () => {
  const snapshot = aSnapshot({}, TAKEN, { ...DELETED, finalizers: ['a', VM_SNAPSHOT_FINALIZER, 'b'] });
  const [change] = decideSnapshot(aWorld({ snapshot })).changes;
  assert.deepEqual(change?.do === 'patch' && change.patch.body, {
    metadata: { resourceVersion: '1', finalizers: ['a', 'b'] },
  });
});

test('what is said again is not written again', () => {
  const snapshot = aSnapshot({}, TAKEN);
  const once = decideSnapshot(aWorld({ snapshot })).status as SnapshotStatus;
  const again = decideSnapshot(aWorld({ snapshot: aSnapshot({}, once), now: LATE }));
  assert.deepEqual([again.status, again.events], [once, []]);
});

/** A VM with one disk whose snapshot is taken. */
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

test('a content that a restore needs goes only when that is finished, and the snapshot after it', async () => {
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

test('a restore does not hold what never was whole: it waits for the VM, which waits for that to go', async () => {
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

test('a content that somebody deletes is told by its snapshot', async () => {
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

test('a copy that somebody deletes later makes the snapshot unusable, and is not made again', async () => {
  const plane = await takenPlane();
  plane.forget('vmsnapshot-snap-uid-volume-root');
  await plane.settle();
  const { phase, readyToUse, creationTime, error } = plane.snapshot?.status ?? {};
  const message = 'VolumeSnapshot vmsnapshot-snap-uid-volume-root does not exist';
  assert.deepEqual([phase, readyToUse, creationTime, error?.message], ['Succeeded', false, CREATED, message]);
  assert.equal(plane.copies.length, 0);
});

test('a content whose finalizer somebody took off gets it back', async () => {
  const plane = await takenPlane();
  const content = plane.content!;
  plane.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
    ...content,
    metadata: { ...content.metadata, finalizers: ['other'] },
  });
  await plane.settle();
  assert.deepEqual(plane.content?.metadata.finalizers, ['other', VM_SNAPSHOT_CONTENT_FINALIZER]);
});
