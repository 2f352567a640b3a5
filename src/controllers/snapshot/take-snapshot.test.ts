import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  SNAPSHOT_INSTANCE_ANNOTATION,
  SNAPSHOT_SET_ANNOTATION,
  SNAPSHOT_SET_SIZE_ANNOTATION,
  VM_SNAPSHOT_FINALIZER,
} from '#api/names.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { CrashError, SnapshotPlane } from '#controllers/snapshot/testing/snapshot-plane.ts';
import {
  aClaim,
  aClass,
  aPersistentVolume,
  aRecord,
  aSnapshot,
  aVm,
  aVmi,
  CREATED,
  CREATED_MS,
  ROOT,
  SEED,
  UUID,
} from '#controllers/snapshot/testing/snapshot-world.ts';
import { findCondition } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';

const STORAGE: [ResourceType, Stored][] = [
  [PERSISTENT_VOLUME_CLAIMS, aClaim('root-claim')],
  [PERSISTENT_VOLUME_CLAIMS, aClaim('data-claim')],
  [PERSISTENT_VOLUMES, aPersistentVolume('root-claim')],
  [PERSISTENT_VOLUMES, aPersistentVolume('data-claim')],
  [VOLUME_SNAPSHOT_CLASSES, aClass('copies')],
];
const NEW_SNAPSHOT = aSnapshot({}, undefined, { finalizers: undefined });
const BASE: [ResourceType, Stored][] = [
  ...STORAGE,
  [VIRTUAL_MACHINES, aVm()],
  [VIRTUAL_MACHINE_IDENTITIES, aRecord()],
  [VIRTUAL_MACHINE_SNAPSHOTS, NEW_SNAPSHOT],
];
const RUNNING: [ResourceType, Stored][] = [...BASE, [VIRTUAL_MACHINE_INSTANCES, aVmi('Running')]];
const AT = '2026-01-01T12:00:07Z';
const COPIED = { creationTime: AT, readyToUse: true };

/** Returns the final objects without their revisions, which depend on the crash. */
function finalObjects(plane: SnapshotPlane): unknown {
  return [plane.snapshot, plane.content, ...plane.copies].map((object) => {
    const { resourceVersion: _, ...metadata } = object?.metadata ?? {};
    return object === undefined ? undefined : { ...object, metadata };
  });
}

/** Settles. After a crash, a new controller continues with the objects as they are. */
async function settleWithRestart(plane: SnapshotPlane): Promise<void> {
  try {
    await plane.settle();
  } catch (error) {
    if (!(error instanceof CrashError)) throw error;
    plane.writesLeft = Number.POSITIVE_INFINITY;
    await plane.settle();
  }
}

interface Path {
  readonly objects: [ResourceType, Stored][];
  readonly steps: ((plane: SnapshotPlane) => void)[];
  readonly end: { phase?: string; copies: number };
}

const create = () => undefined;
const deleteSnapshot = (plane: SnapshotPlane) => plane.delete(VIRTUAL_MACHINE_SNAPSHOTS, 'snap');
const completeCopies = (plane: SnapshotPlane) => plane.report(COPIED);
const passDeadline = (plane: SnapshotPlane) => void (plane.nowMs = CREATED_MS + 300_000);
const failCopies = (plane: SnapshotPlane) => plane.report({ error: { time: AT, message: 'disk is full' } });
const retained: [ResourceType, Stored][] = BASE.map(([type, object]) =>
  object === NEW_SNAPSHOT
    ? [type, aSnapshot({ deletionPolicy: 'Retain' }, undefined, { finalizers: undefined })]
    : [type, object],
);

const paths: Record<string, Path> = {
  'a stopped VM': { objects: BASE, steps: [create, completeCopies], end: { phase: 'Succeeded', copies: 2 } },
  'a running VM, copy by copy': {
    objects: RUNNING,
    steps: [create, (plane) => plane.report(COPIED, (name) => name.endsWith('root')), completeCopies],
    end: { phase: 'Succeeded', copies: 2 },
  },
  'a VM without disks': {
    objects: [
      [VIRTUAL_MACHINES, aVm([SEED])],
      [VIRTUAL_MACHINE_SNAPSHOTS, NEW_SNAPSHOT],
    ],
    steps: [create],
    end: { phase: 'Succeeded', copies: 0 },
  },
  'a deadline that passes': { objects: BASE, steps: [create, passDeadline], end: { phase: 'Failed', copies: 0 } },
  'an error while the guest runs': {
    objects: RUNNING,
    steps: [create, failCopies],
    end: { phase: 'Failed', copies: 0 },
  },
  'an error that is temporary': {
    objects: BASE,
    steps: [create, failCopies, completeCopies],
    end: { phase: 'Succeeded', copies: 2 },
  },
  'taken and deleted': { objects: BASE, steps: [create, completeCopies, deleteSnapshot], end: { copies: 0 } },
  'taken, deleted and retained': {
    objects: retained,
    steps: [create, completeCopies, deleteSnapshot],
    end: { copies: 2 },
  },
  'deleted while in progress': { objects: BASE, steps: [create, deleteSnapshot], end: { copies: 0 } },
  'deleted while in progress with the policy Retain': {
    objects: retained,
    steps: [create, deleteSnapshot],
    end: { copies: 0 },
  },
  'failed and deleted': { objects: retained, steps: [create, passDeadline, deleteSnapshot], end: { copies: 0 } },
};

async function runPath({ objects, steps }: Path, writesLeft = Number.POSITIVE_INFINITY): Promise<SnapshotPlane> {
  const plane = new SnapshotPlane(objects);
  plane.writesLeft = writesLeft;
  for (const step of steps) {
    step(plane);
    await settleWithRestart(plane);
  }
  return plane;
}

for (const [sentence, path] of Object.entries(paths)) {
  test(`${sentence}: a crash after any write leads to the same end`, async () => {
    const whole = await runPath(path);
    const { phase } = whole.snapshot?.status ?? {};
    assert.deepEqual({ phase, copies: whole.copies.length }, { phase: undefined, ...path.end });
    assert.ok(whole.writes > 3);
    for (let writes = 0; writes < whole.writes; writes++) {
      assert.deepEqual(finalObjects(await runPath(path, writes)), finalObjects(whole), `after ${writes} writes`);
    }
  });
}

test('the content has the VM, its identity record and its claims', async () => {
  const { content } = await runPath({ ...paths['a running VM, copy by copy']!, steps: [create] });
  const { source, volumeBackups, virtualMachineSnapshotName } = content!.spec;
  const { metadata, spec, status } = source.virtualMachine;
  assert.equal(virtualMachineSnapshotName, 'snap');
  assert.deepEqual(metadata, { name: 'db', namespace: 'ns', uid: 'vm-uid', labels: { app: 'db' } });
  assert.equal(spec.template.spec?.domain.firmware?.uuid, UUID);
  assert.deepEqual(status, {}, 'the content does not say that the VM is held');
  assert.deepEqual(source.virtualMachineIdentity, { spec: aRecord().spec, status: aRecord().status });
  assert.deepEqual(
    volumeBackups?.map((backup) => [backup.volumeName, backup.persistentVolumeClaim.metadata.name]),
    [
      ['root', 'root-claim'],
      ['data', 'data-claim'],
    ],
  );
});

test('the copies of a running VM are one set of its instance, owned by the content', async () => {
  const { content, copies } = await runPath({ ...paths['a running VM, copy by copy']!, steps: [create] });
  const annotations = {
    [SNAPSHOT_SET_ANNOTATION]: 'snap-uid',
    [SNAPSHOT_SET_SIZE_ANNOTATION]: '2',
    [SNAPSHOT_INSTANCE_ANNOTATION]: 'vmi-uid',
  };
  assert.deepEqual(
    copies.map(({ metadata, spec }) => [metadata.name, metadata.annotations, spec]),
    ['root', 'data'].map((name) => [
      `vmsnapshot-snap-uid-volume-${name}`,
      annotations,
      { source: { persistentVolumeClaimName: `${name}-claim` }, volumeSnapshotClassName: 'copies' },
    ]),
  );
  for (const { metadata } of copies) assert.equal(metadata.ownerReferences?.[0]?.uid, content?.metadata.uid);
});

test('a disk that the running guest does not use is not in the set', async () => {
  const vmi = aVmi('Running', { volumes: [ROOT, SEED] });
  const { copies } = await runPath({
    ...paths['a stopped VM']!,
    objects: [...BASE, [VIRTUAL_MACHINE_INSTANCES, vmi]],
    steps: [create],
  });
  const sizes = copies.map(({ metadata }) => metadata.annotations?.[SNAPSHOT_SET_SIZE_ANNOTATION]);
  assert.deepEqual(sizes, ['1', undefined]);
});

test('the set keeps its instance if that ends after the content was created', async () => {
  const plane = new SnapshotPlane(RUNNING);
  // The controller crashes after each write until the content exists.
  for (plane.writesLeft = 1; plane.content === undefined; plane.writesLeft = 1) {
    await assert.rejects(plane.settle(), CrashError);
  }
  assert.equal(plane.copies.length, 0);
  plane.delete(VIRTUAL_MACHINE_INSTANCES, 'db');
  plane.writesLeft = Number.POSITIVE_INFINITY;
  await plane.settle();
  assert.deepEqual(
    plane.copies.map(({ metadata }) => metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION]),
    ['vmi-uid', 'vmi-uid'],
  );
});

test('the status of a complete snapshot has its time, volumes and indications', async () => {
  const { snapshot, content, eventMessages } = await runPath(paths['a running VM, copy by copy']!);
  const { conditions, sourceIndications, ...status } = snapshot!.status!;
  assert.deepEqual(status, {
    sourceUID: 'vm-uid',
    virtualMachineSnapshotContentName: 'vmsnapshot-content-snap-uid',
    creationTime: AT,
    phase: 'Succeeded',
    readyToUse: true,
    error: undefined,
    indications: ['Online', 'NoGuestAgent'],
    snapshotVolumes: { includedVolumes: ['root', 'data'], excludedVolumes: ['seed'] },
  });
  assert.deepEqual(
    conditions?.map(({ type, status: value, message }) => [type, value, message]),
    [
      ['Progressing', 'False', 'Operation complete'],
      ['Ready', 'True', 'Operation complete'],
    ],
  );
  assert.equal(sourceIndications?.length, 2);
  assert.deepEqual([content?.status?.readyToUse, content?.status?.creationTime], [true, AT]);
  assert.equal(eventMessages.at(-1), 'VirtualMachineSnapshot snap of VM db is ready');
  assert.ok(eventMessages.includes('Successfully created VirtualMachineSnapshotContent vmsnapshot-content-snap-uid'));
});

test('the creation time of a snapshot is that of the last copy', async () => {
  const first = (plane: SnapshotPlane) =>
    plane.report({ creationTime: CREATED, readyToUse: true }, (name) => name.endsWith('root'));
  const second = (plane: SnapshotPlane) => plane.report(COPIED, (name) => name.endsWith('data'));
  const { snapshot } = await runPath({ ...paths['a stopped VM']!, steps: [create, first, second] });
  assert.equal(snapshot?.status?.creationTime, AT);
});

test('a snapshot without a claim that cannot be copied is partial', async () => {
  const objects = BASE.filter(([, { metadata }]) => metadata.name !== 'pv-data-claim');
  const other = aPersistentVolume('data-claim', 'nfs.example.com');
  const { snapshot } = await runPath({ ...paths['a stopped VM']!, objects: [...objects, [PERSISTENT_VOLUMES, other]] });
  assert.deepEqual(snapshot?.status?.indications, ['PartialSnapshot']);
  assert.deepEqual(snapshot.status.snapshotVolumes, { includedVolumes: ['root'], excludedVolumes: ['data', 'seed'] });
});

test('a snapshot gets its finalizer before its content is created', async () => {
  const plane = new SnapshotPlane(BASE);
  plane.writesLeft = 1;
  await assert.rejects(plane.settle(), CrashError);
  assert.deepEqual(plane.snapshot?.metadata.finalizers, [VM_SNAPSHOT_FINALIZER]);
  assert.equal(plane.content, undefined);
});

test('a VM with one more disk than a plan has changes gets all its copies', async () => {
  const names = Array.from({ length: 101 }, (_, index) => `disk-${index}`);
  const volumes = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const objects: [ResourceType, Stored][] = [
    [VIRTUAL_MACHINES, aVm(volumes)],
    [VIRTUAL_MACHINE_SNAPSHOTS, NEW_SNAPSHOT],
    [VOLUME_SNAPSHOT_CLASSES, aClass('copies')],
    ...names.flatMap((name): [ResourceType, Stored][] => [
      [PERSISTENT_VOLUME_CLAIMS, aClaim(name)],
      [PERSISTENT_VOLUMES, aPersistentVolume(name)],
    ]),
  ];
  const plane = await runPath({ objects, steps: [create, completeCopies], end: { copies: 101 } });
  assert.deepEqual([plane.copies.length, plane.snapshot?.status?.phase], [101, 'Succeeded']);
});

test('the conditions report that a snapshot is in progress', async () => {
  const { snapshot } = await runPath({ ...paths['a stopped VM']!, steps: [create] });
  const { phase, readyToUse, conditions } = snapshot?.status ?? {};
  assert.deepEqual([phase, readyToUse], ['InProgress', false]);
  assert.equal(findCondition(conditions, 'Progressing')?.message, 'Source locked and operation in progress');
  assert.equal(findCondition(conditions, 'Ready')?.status, 'False');
});

test('a copy that a user deletes is created again for a stopped VM, and fails the snapshot of a running one', async () => {
  for (const [objects, want] of [
    [BASE, [2, 'InProgress', undefined]],
    [RUNNING, [0, 'Failed', 'VolumeSnapshot vmsnapshot-snap-uid-volume-root does not exist']],
  ] as const) {
    const plane = await runPath({ ...paths['a stopped VM']!, objects: [...objects], steps: [create] });
    plane.deleteCopy('vmsnapshot-snap-uid-volume-root');
    await plane.settle();
    const { phase, error } = plane.snapshot?.status ?? {};
    assert.deepEqual([plane.copies.length, phase, error?.message], want);
  }
});

test('a retained content does not belong to a new snapshot of the same name', async () => {
  const plane = await runPath({ ...paths['taken, deleted and retained']! });
  const kept = plane.content?.metadata.uid;
  plane.put(VIRTUAL_MACHINE_SNAPSHOTS, { ...NEW_SNAPSHOT, metadata: { ...NEW_SNAPSHOT.metadata, uid: 'second-uid' } });
  await plane.settle();
  const contents = plane.cacheOf(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).list();
  assert.deepEqual(
    contents.map(({ metadata }) => metadata.name),
    ['vmsnapshot-content-snap-uid', 'vmsnapshot-content-second-uid'],
  );
  assert.equal(contents[0]?.metadata.uid, kept);
  assert.equal(contents[0]?.status?.readyToUse, true);
  plane.deleteCopy('vmsnapshot-snap-uid-volume-root');
  await plane.settle();
  const message = 'VolumeSnapshot vmsnapshot-snap-uid-volume-root does not exist';
  assert.equal(plane.content?.status?.error?.message, message, 'the new snapshot does not create the copy again');
});

test('no content is created while another snapshot holds the VM', async () => {
  const plane = new SnapshotPlane(BASE);
  plane.holder = 'another';
  await plane.settle();
  assert.equal(plane.content, undefined);
  plane.holder = 'snap';
  await plane.settle();
  assert.notEqual(plane.content, undefined);
});

test('the creation time of a snapshot without disks is that of its content', async () => {
  const later = (plane: SnapshotPlane) => void (plane.nowMs += 60_000);
  const { snapshot, content } = await runPath({ ...paths['a VM without disks']!, steps: [create, later] });
  assert.deepEqual([snapshot?.status?.creationTime, content?.status?.creationTime], [CREATED, CREATED]);
});

test('stale caches cause no failure', async () => {
  for (const kind of [VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, VIRTUAL_MACHINES]) {
    for (const steps of [[create], [create, completeCopies]]) {
      const plane = await runPath({ ...paths['a running VM, copy by copy']!, steps });
      const before = finalObjects(plane);
      plane.emptyCaches.add(kind);
      await plane.settle();
      assert.deepEqual(finalObjects(plane), before, kind.kind);
    }
  }
});

test('a stale cache of snapshots changes no content', async () => {
  const path = paths['a running VM, copy by copy']!;
  const { writes } = await runPath({ ...path, steps: [create] });
  for (let left = 1; left <= writes; left++) {
    const plane = new SnapshotPlane(path.objects);
    plane.writesLeft = left;
    await plane.settle().catch(() => undefined);
    plane.writesLeft = Number.POSITIVE_INFINITY;
    plane.emptyCaches.add(VIRTUAL_MACHINE_SNAPSHOTS);
    await plane.settle();
    plane.emptyCaches.clear();
    await plane.settle();
    assert.deepEqual([plane.snapshot?.status?.phase, plane.copies.length], ['InProgress', 2], `after ${left} writes`);
  }
});
