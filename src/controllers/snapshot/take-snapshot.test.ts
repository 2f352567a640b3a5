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
import { Died, SnapshotPlane } from '#controllers/snapshot/snapshot-plane.fixture.ts';
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
} from '#controllers/snapshot/snapshot-world.fixture.ts';
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
const FRESH = aSnapshot({}, undefined, { finalizers: undefined });
const BASE: [ResourceType, Stored][] = [
  ...STORAGE,
  [VIRTUAL_MACHINES, aVm()],
  [VIRTUAL_MACHINE_IDENTITIES, aRecord()],
  [VIRTUAL_MACHINE_SNAPSHOTS, FRESH],
];
const RUNNING: [ResourceType, Stored][] = [...BASE, [VIRTUAL_MACHINE_INSTANCES, aVmi('Running')]];
const AT = '2026-01-01T12:00:07Z';
const COPIED = { creationTime: AT, readyToUse: true };

/** What is left when the crash point, if there was one, is forgotten. */
function stateOf(plane: SnapshotPlane): unknown {
  return [plane.snapshot, plane.content, ...plane.copies].map((object) => {
    const { resourceVersion: _, ...metadata } = object?.metadata ?? {};
    return object === undefined ? undefined : { ...object, metadata };
  });
}

/** Whoever dies is followed by somebody who knows nothing but the objects. */
async function settle(plane: SnapshotPlane): Promise<void> {
  try {
    await plane.settle();
  } catch (error) {
    if (!(error instanceof Died)) throw error;
    plane.writesLeft = Number.POSITIVE_INFINITY;
    await plane.settle();
  }
}

interface Path {
  readonly objects: [ResourceType, Stored][];
  readonly steps: ((plane: SnapshotPlane) => void)[];
  readonly end: { phase?: string; copies: number };
}

const ask = () => undefined;
const deleted = (plane: SnapshotPlane) => plane.delete(VIRTUAL_MACHINE_SNAPSHOTS, 'snap');
const copied = (plane: SnapshotPlane) => plane.report(COPIED);
const late = (plane: SnapshotPlane) => void (plane.nowMs = CREATED_MS + 300_000);
const wentWrong = (plane: SnapshotPlane) => plane.report({ error: { time: AT, message: 'disk is full' } });
const retained: [ResourceType, Stored][] = BASE.map(([type, object]) =>
  object === FRESH
    ? [type, aSnapshot({ deletionPolicy: 'Retain' }, undefined, { finalizers: undefined })]
    : [type, object],
);

const paths: Record<string, Path> = {
  'a stopped VM': { objects: BASE, steps: [ask, copied], end: { phase: 'Succeeded', copies: 2 } },
  'a running VM, copy by copy': {
    objects: RUNNING,
    steps: [ask, (plane) => plane.report(COPIED, (name) => name.endsWith('root')), copied],
    end: { phase: 'Succeeded', copies: 2 },
  },
  'a VM without disks': {
    objects: [
      [VIRTUAL_MACHINES, aVm([SEED])],
      [VIRTUAL_MACHINE_SNAPSHOTS, FRESH],
    ],
    steps: [ask],
    end: { phase: 'Succeeded', copies: 0 },
  },
  'one that is too late': { objects: BASE, steps: [ask, late], end: { phase: 'Failed', copies: 0 } },
  'an error while the guest runs': { objects: RUNNING, steps: [ask, wentWrong], end: { phase: 'Failed', copies: 0 } },
  'an error that goes by itself': {
    objects: BASE,
    steps: [ask, wentWrong, copied],
    end: { phase: 'Succeeded', copies: 2 },
  },
  'taken and deleted': { objects: BASE, steps: [ask, copied, deleted], end: { copies: 0 } },
  'taken, deleted and kept': { objects: retained, steps: [ask, copied, deleted], end: { copies: 2 } },
  'deleted in the middle': { objects: BASE, steps: [ask, deleted], end: { copies: 0 } },
  'deleted in the middle, which keeps nothing': { objects: retained, steps: [ask, deleted], end: { copies: 0 } },
  'failed and deleted': { objects: retained, steps: [ask, late, deleted], end: { copies: 0 } },
};

async function walk({ objects, steps }: Path, writesLeft = Number.POSITIVE_INFINITY): Promise<SnapshotPlane> {
  const plane = new SnapshotPlane(objects);
  plane.writesLeft = writesLeft;
  for (const step of steps) {
    step(plane);
    await settle(plane);
  }
  return plane;
}

for (const [sentence, path] of Object.entries(paths)) {
  test(`${sentence}: a crash after any write changes nothing about the end`, async () => {
    const whole = await walk(path);
    const { phase } = whole.snapshot?.status ?? {};
    assert.deepEqual({ phase, copies: whole.copies.length }, { phase: undefined, ...path.end });
    assert.ok(whole.writes > 3);
    for (let writes = 0; writes < whole.writes; writes++) {
      assert.deepEqual(stateOf(await walk(path, writes)), stateOf(whole), `after ${writes} writes`);
    }
  });
}

test('the content holds the VM, who it is and its claims as they are', async () => {
  const { content } = await walk({ ...paths['a running VM, copy by copy']!, steps: [ask] });
  const { source, volumeBackups, virtualMachineSnapshotName } = content!.spec;
  const { metadata, spec, status } = source.virtualMachine;
  assert.equal(virtualMachineSnapshotName, 'snap');
  assert.deepEqual(metadata, { name: 'db', namespace: 'ns', uid: 'vm-uid', labels: { app: 'db' } });
  assert.equal(spec.template.spec?.domain.firmware?.uuid, UUID);
  assert.deepEqual(status, {}, 'the lock belongs to the moment');
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
  const { content, copies } = await walk({ ...paths['a running VM, copy by copy']!, steps: [ask] });
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

test('a disk that the running guest does not have yet is copied by itself', async () => {
  const vmi = aVmi('Running', { volumes: [ROOT, SEED] });
  const { copies } = await walk({
    ...paths['a stopped VM']!,
    objects: [...BASE, [VIRTUAL_MACHINE_INSTANCES, vmi]],
    steps: [ask],
  });
  const sizes = copies.map(({ metadata }) => metadata.annotations?.[SNAPSHOT_SET_SIZE_ANNOTATION]);
  assert.deepEqual(sizes, ['1', undefined]);
});

test('an instance that goes after the content was made is still the one of the set', async () => {
  const plane = new SnapshotPlane(RUNNING);
  // The finalizer, two statuses, the content: then the process dies.
  for (plane.writesLeft = 1; plane.content === undefined; plane.writesLeft = 1) {
    await assert.rejects(plane.settle(), Died);
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

test('a snapshot that is ready says when, of what and how it was taken', async () => {
  const { snapshot, content, told } = await walk(paths['a running VM, copy by copy']!);
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
  assert.equal(told.at(-1), 'VirtualMachineSnapshot snap of VM db is ready');
  assert.ok(told.includes('Successfully created VirtualMachineSnapshotContent vmsnapshot-content-snap-uid'));
});

test('the moment of a snapshot is that of the last copy', async () => {
  const first = (plane: SnapshotPlane) =>
    plane.report({ creationTime: CREATED, readyToUse: true }, (name) => name.endsWith('root'));
  const second = (plane: SnapshotPlane) => plane.report(COPIED, (name) => name.endsWith('data'));
  const { snapshot } = await walk({ ...paths['a stopped VM']!, steps: [ask, first, second] });
  assert.equal(snapshot?.status?.creationTime, AT);
});

test('a claim that cannot be copied makes a partial snapshot', async () => {
  const objects = BASE.filter(([, { metadata }]) => metadata.name !== 'pv-data-claim');
  const other = aPersistentVolume('data-claim', 'nfs.example.com');
  const { snapshot } = await walk({ ...paths['a stopped VM']!, objects: [...objects, [PERSISTENT_VOLUMES, other]] });
  assert.deepEqual(snapshot?.status?.indications, ['PartialSnapshot']);
  assert.deepEqual(snapshot.status.snapshotVolumes, { includedVolumes: ['root'], excludedVolumes: ['data', 'seed'] });
});

test('a snapshot is held before anything is made for it', async () => {
  const plane = new SnapshotPlane(BASE);
  plane.writesLeft = 1;
  await assert.rejects(plane.settle(), Died);
  assert.deepEqual(plane.snapshot?.metadata.finalizers, [VM_SNAPSHOT_FINALIZER]);
  assert.equal(plane.content, undefined);
});

test('a VM with one more disk than a plan has changes gets all its copies', async () => {
  const names = Array.from({ length: 101 }, (_, index) => `disk-${index}`);
  const volumes = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const objects: [ResourceType, Stored][] = [
    [VIRTUAL_MACHINES, aVm(volumes)],
    [VIRTUAL_MACHINE_SNAPSHOTS, FRESH],
    [VOLUME_SNAPSHOT_CLASSES, aClass('copies')],
    ...names.flatMap((name): [ResourceType, Stored][] => [
      [PERSISTENT_VOLUME_CLAIMS, aClaim(name)],
      [PERSISTENT_VOLUMES, aPersistentVolume(name)],
    ]),
  ];
  const plane = await walk({ objects, steps: [ask, copied], end: { copies: 101 } });
  assert.deepEqual([plane.copies.length, plane.snapshot?.status?.phase], [101, 'Succeeded']);
});

test('while it is taken the conditions say so', async () => {
  const { snapshot } = await walk({ ...paths['a stopped VM']!, steps: [ask] });
  const { phase, readyToUse, conditions } = snapshot?.status ?? {};
  assert.deepEqual([phase, readyToUse], ['InProgress', false]);
  assert.equal(findCondition(conditions, 'Progressing')?.message, 'Source locked and operation in progress');
  assert.equal(findCondition(conditions, 'Ready')?.status, 'False');
});

test('a copy that somebody deletes is made again for a VM that stands still, and fails one that runs', async () => {
  for (const [objects, want] of [
    [BASE, [2, 'InProgress', undefined]],
    [RUNNING, [0, 'Failed', 'VolumeSnapshot vmsnapshot-snap-uid-volume-root does not exist']],
  ] as const) {
    const plane = await walk({ ...paths['a stopped VM']!, objects: [...objects], steps: [ask] });
    plane.forget('vmsnapshot-snap-uid-volume-root');
    await plane.settle();
    const { phase, error } = plane.snapshot?.status ?? {};
    assert.deepEqual([plane.copies.length, phase, error?.message], want);
  }
});

test('contents are of their snapshot alone, though another has its name', async () => {
  const plane = await walk({ ...paths['taken, deleted and kept']! });
  const kept = plane.content?.metadata.uid;
  plane.put(VIRTUAL_MACHINE_SNAPSHOTS, { ...FRESH, metadata: { ...FRESH.metadata, uid: 'second-uid' } });
  await plane.settle();
  const contents = plane.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).list();
  assert.deepEqual(
    contents.map(({ metadata }) => metadata.name),
    ['vmsnapshot-content-snap-uid', 'vmsnapshot-content-second-uid'],
  );
  assert.equal(contents[0]?.metadata.uid, kept);
  assert.equal(contents[0]?.status?.readyToUse, true);
  plane.forget('vmsnapshot-snap-uid-volume-root');
  await plane.settle();
  const message = 'VolumeSnapshot vmsnapshot-snap-uid-volume-root does not exist';
  assert.equal(plane.content?.status?.error?.message, message, 'the other does not make it again');
});

test('nothing is made while the VM is held for somebody else', async () => {
  const plane = new SnapshotPlane(BASE);
  plane.holder = 'another';
  await plane.settle();
  assert.equal(plane.content, undefined);
  plane.holder = 'snap';
  await plane.settle();
  assert.notEqual(plane.content, undefined);
});

test('the moment of a snapshot without disks is the one at which it was taken', async () => {
  const later = (plane: SnapshotPlane) => void (plane.nowMs += 60_000);
  const { snapshot, content } = await walk({ ...paths['a VM without disks']!, steps: [ask, later] });
  assert.deepEqual([snapshot?.status?.creationTime, content?.status?.creationTime], [CREATED, CREATED]);
});

test('caches that are behind make nothing lost', async () => {
  for (const kind of [VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, VIRTUAL_MACHINES]) {
    for (const steps of [[ask], [ask, copied]]) {
      const plane = await walk({ ...paths['a running VM, copy by copy']!, steps });
      const before = stateOf(plane);
      plane.behind.add(kind);
      await plane.settle();
      assert.deepEqual(stateOf(plane), before, kind.kind);
    }
  }
});

test('a cache of snapshots that is behind leaves a content as it is', async () => {
  const path = paths['a running VM, copy by copy']!;
  const { writes } = await walk({ ...path, steps: [ask] });
  for (let left = 1; left <= writes; left++) {
    const plane = new SnapshotPlane(path.objects);
    plane.writesLeft = left;
    await plane.settle().catch(() => undefined);
    plane.writesLeft = Number.POSITIVE_INFINITY;
    plane.behind.add(VIRTUAL_MACHINE_SNAPSHOTS);
    await plane.settle();
    plane.behind.clear();
    await plane.settle();
    assert.deepEqual([plane.snapshot?.status?.phase, plane.copies.length], ['InProgress', 2], `after ${left} writes`);
  }
});
