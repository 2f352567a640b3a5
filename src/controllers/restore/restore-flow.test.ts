/** Runs whole restores, also with a controller that crashes after any of its writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import { firmwareOf } from '#controllers/restore/build-restored-vm.ts';
import { RestorePlane } from '#controllers/restore/testing/restore-plane.ts';
import {
  aClaim,
  aContent,
  aRecord,
  aRestore,
  aSnapshot,
  aVm,
  aVmi,
  aVolumeSnapshot,
  type ContentOverrides,
  IDENTITY,
  OTHER_UUID,
  UUID,
} from '#controllers/restore/testing/restore-world.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';

const LEGACY = legacyUuid('db');
const KEY = 'ns/back';

interface Scene {
  readonly content?: ContentOverrides;
  readonly spec?: Partial<VirtualMachineRestore['spec']>;
  readonly target?: string;
  /** The existing VMs with their current uuids. */
  readonly vms?: Readonly<Record<string, string>>;
  /** True if the target runs. */
  readonly runs?: boolean;
}

function startRestore({ content, spec, target, vms = {}, runs }: Scene): RestorePlane {
  const plane = new RestorePlane();
  const { api } = plane;
  api.put(VIRTUAL_MACHINE_SNAPSHOTS, unstored(aSnapshot()));
  api.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, unstored(aContent(content)));
  api.put(VOLUME_SNAPSHOTS, unstored(aVolumeSnapshot()));
  for (const [name, uuid] of Object.entries(vms)) {
    const strategy = { runStrategy: runs === true ? 'Always' : 'Halted' };
    const vm = api.put(VIRTUAL_MACHINES, unstored(aVm({ name, firmware: { uuid }, spec: strategy })));
    const record = aRecord();
    const [owner] = record.metadata.ownerReferences ?? [];
    const ownerReferences = [{ ...owner!, name, uid: vm.metadata.uid }];
    api.put(
      VIRTUAL_MACHINE_IDENTITIES,
      unstored({ ...record, metadata: { ...record.metadata, name, ownerReferences } }),
    );
    if (runs === true) api.put(VIRTUAL_MACHINE_INSTANCES, unstored(aVmi(name)));
  }
  if (vms['db'] !== undefined) {
    const metadata = { ...aClaim().metadata, name: 'db-root', annotations: {}, ownerReferences: undefined };
    api.put(PERSISTENT_VOLUME_CLAIMS, unstored({ ...aClaim(), metadata, spec: { storageClassName: 'fast' } }));
  }
  api.put(VIRTUAL_MACHINE_RESTORES, unstored(aRestore({ target, spec, metadata: { finalizers: undefined } })));
  return plane;
}

/** Returns the object as a client sends it. */
function unstored<T extends KubeObject>(object: Stored<T>): T {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Returns the final objects, without the fields that differ between runs. */
function endOf({ api }: RestorePlane): object {
  const owners = ({ metadata }: KubeObject) =>
    metadata.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`) ?? [];
  const uuids = (text: string) => text.replaceAll(/uid-\d+/g, 'uid');
  const stripped = (object: KubeObject) => ({
    name: object.metadata.name,
    owners: owners(object),
    labels: object.metadata.labels,
    annotations: object.metadata.annotations,
    spec: object['spec'],
    status: object['status'],
  });
  const kinds = [VIRTUAL_MACHINES, VIRTUAL_MACHINE_IDENTITIES, PERSISTENT_VOLUME_CLAIMS, VIRTUAL_MACHINE_RESTORES];
  return kinds.map((type) => JSON.parse(uuids(JSON.stringify(api.all<KubeObject>(type).map(stripped)))) as unknown);
}

function restoreOf({ api }: RestorePlane) {
  return api.peek(VIRTUAL_MACHINE_RESTORES, KEY);
}

const uuidOf = ({ api }: RestorePlane, name: string) => firmwareOf(api.peek(VIRTUAL_MACHINES, `ns/${name}`)!).uuid;
const claimNames = ({ api }: RestorePlane) => api.all(PERSISTENT_VOLUME_CLAIMS).map(({ metadata }) => metadata.name);

const WITHOUT_UUID = { vm: { firmware: {} }, identity: 'none' } as const;

/** The scene, the name of the target, and its uuid in the end. */
const scenes: Record<string, [Scene, string, string]> = {
  'an existing VM': [{ vms: { db: OTHER_UUID } }, 'db', UUID],
  'an existing VM from a snapshot without uuid (row 4)': [
    { vms: { db: OTHER_UUID }, content: WITHOUT_UUID },
    'db',
    LEGACY,
  ],
  'an existing VM that runs and is stopped': [
    { vms: { db: OTHER_UUID }, runs: true, spec: { targetReadinessPolicy: 'StopTarget' } },
    'db',
    UUID,
  ],
  'an existing VM in place': [{ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } }, 'db', UUID],
  'a VM that was deleted (row 8)': [{}, 'db', UUID],
  'a VM that was deleted, from a snapshot without uuid (row 13)': [{ content: WITHOUT_UUID }, 'db', LEGACY],
  'a VM of another name, with a uuid that no VM has': [{ target: 'copy' }, 'copy', UUID],
  'a VM of another name, with a uuid that the old VM has': [{ target: 'copy', vms: { db: UUID } }, 'copy', 'made-1'],
  'a VM of another name, with a legacy uuid that the old VM will get': [
    { target: 'copy', vms: { db: '' }, content: WITHOUT_UUID },
    'copy',
    'made-1',
  ],
  'claims without an owner': [{ spec: { volumeOwnershipPolicy: 'None' } }, 'db', UUID],
};

for (const [name, [scene, target, uuid]] of Object.entries(scenes)) {
  test(`${name}: a crash after any write leads to the same end`, async () => {
    const whole = startRestore(scene);
    await whole.settle();
    assert.equal(restoreOf(whole)?.status?.complete, true, JSON.stringify(restoreOf(whole)?.status));
    assert.equal(uuidOf(whole, target), uuid);
    assert.ok(whole.writes > 5);
    const wanted = endOf(whole);
    for (let writes = 1; writes <= whole.writes; writes++) {
      const plane = startRestore(scene);
      plane.crashAfter(writes);
      await plane.settle();
      assert.deepEqual(endOf(plane), wanted, `crash after write ${writes}`);
      assertDecided(plane, [uuid, ...Object.values(scene.vms ?? {})], writes);
    }
  });
}

/** Asserts that no VM ever had an unexpected uuid, and that no VM was created twice. */
function assertDecided({ api }: RestorePlane, decided: readonly string[], writes: number): void {
  const seen = api.history.filter(({ collection }) => collection === 'virtualmachines.kubevirt.io');
  for (const { object } of seen) {
    assert.ok(decided.includes(firmwareOf(object as object).uuid ?? ''), `crash after write ${writes}`);
  }
  const added = seen.filter(({ type }) => type === 'ADDED').map(({ key }) => key);
  assert.equal(new Set(added).size, added.length, `crash after write ${writes}`);
}

test('the record of a new target exists before its first start', async () => {
  const plane = startRestore({});
  await plane.settle();
  const record = plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db');
  const vm = plane.api.peek(VIRTUAL_MACHINES, 'ns/db');
  assert.deepEqual(record?.spec, IDENTITY.spec);
  assert.deepEqual(record?.status?.devices, IDENTITY.status.devices);
  assert.deepEqual(
    record?.status?.history?.map(({ what }) => what),
    ['first seen', 'restored from snapshot before'],
  );
  assert.equal(record?.metadata.ownerReferences?.[0]?.uid, vm?.metadata.uid);
  assert.deepEqual(record?.metadata.finalizers, [RECORD_FINALIZER], 'the finalizer holds it while the VM exists');
  assert.equal(plane.api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.metadata.ownerReferences?.[0]?.uid, vm?.metadata.uid);
});

test('a new target adopts a record without an owner', async () => {
  const plane = startRestore({});
  const { metadata, ...record } = unstored(aRecord());
  plane.api.put(VIRTUAL_MACHINE_IDENTITIES, { ...record, metadata: { ...metadata, ownerReferences: undefined } });
  await plane.settle();
  const after = plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db');
  assert.deepEqual(after?.spec, IDENTITY.spec);
  assert.equal(after?.metadata.ownerReferences?.[0]?.uid, plane.api.peek(VIRTUAL_MACHINES, 'ns/db')?.metadata.uid);
  assert.deepEqual(after?.metadata.finalizers, [RECORD_FINALIZER]);
});

test('the record of an existing VM is restored and keeps its history', async () => {
  const plane = startRestore({ vms: { db: OTHER_UUID } });
  await plane.settle();
  const record = plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db');
  assert.deepEqual(record?.spec, IDENTITY.spec);
  assert.deepEqual(record?.status?.machine, IDENTITY.status.machine);
  assert.deepEqual(
    record?.status?.history?.map(({ what }) => what),
    ['later', 'restored from snapshot before'],
  );
});

test('a VM with a new uuid gets new MACs and an Event', async () => {
  const plane = startRestore({ target: 'copy', vms: { db: UUID } });
  await plane.settle();
  const { smbios } = IDENTITY.spec;
  assert.deepEqual(
    plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/copy')?.spec,
    { smbios },
    'the SMBIOS strings stay the same',
  );
  assert.ok(plane.events.some(({ reason }) => reason === 'FirmwareUUIDRenewed'));
});

test('only one of two restores to other names gets the uuid', async () => {
  const plane = startRestore({ target: 'copy' });
  const other = unstored(aRestore({ target: 'third', metadata: { name: 'again', finalizers: undefined } }));
  plane.api.put(VIRTUAL_MACHINE_RESTORES, other);
  await plane.settle();
  assert.deepEqual(new Set([uuidOf(plane, 'copy'), uuidOf(plane, 'third')]), new Set([UUID, 'made-1']));
});

/** Runs the scene once per write, deletes the restore after that write and settles. */
async function cancelAfterEachWrite(scene: Scene, check: (plane: RestorePlane, why: string) => void): Promise<void> {
  const whole = startRestore(scene);
  await whole.settle();
  for (let writes = 1; writes < whole.writes; writes++) {
    const plane = startRestore(scene);
    plane.crashAfter(writes);
    plane.onCrash = () => void plane.api.delete(VIRTUAL_MACHINE_RESTORES, KEY);
    await plane.settle();
    assert.equal(restoreOf(plane), undefined, `after ${writes} writes`);
    check(plane, `after ${writes} writes`);
  }
}

test('a cancelled restore has either changed nothing or restored the VM', async () => {
  const before = startRestore({ vms: { db: OTHER_UUID } }).api;
  const ends = new Set<boolean>();
  await cancelAfterEachWrite({ vms: { db: OTHER_UUID } }, (plane, why) => {
    const restored = uuidOf(plane, 'db') === UUID;
    ends.add(restored);
    assert.equal(claimNames(plane).length, restored ? 2 : 1, why);
    if (restored) return;
    for (const type of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_IDENTITIES]) {
      assert.deepEqual(
        plane.api.peek<KubeObject>(type, 'ns/db')?.['spec'],
        before.peek<KubeObject>(type, 'ns/db')?.['spec'],
        why,
      );
    }
  });
  assert.equal(ends.size, 2, 'both outcomes occurred');
});

test('a restore in place that is cancelled never leaves the VM without its disk', () =>
  cancelAfterEachWrite({ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } }, (plane, why) => {
    assert.deepEqual(claimNames(plane), ['db-root'], why);
    const restored = plane.api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.spec.dataSource !== undefined;
    assert.equal(uuidOf(plane, 'db') === UUID, restored, why);
  }));

test('a cancelled restore leaves a new VM complete or does not create it', () =>
  cancelAfterEachWrite({}, (plane, why) => {
    const isCreated = plane.api.peek(VIRTUAL_MACHINES, 'ns/db') !== undefined;
    assert.equal(claimNames(plane).length, isCreated ? 1 : 0, why);
    assert.equal(plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db') !== undefined, isCreated, why);
  }));

test('in place, a VM that cannot be written keeps the restored disks', async () => {
  const plane = startRestore({ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } });
  plane.invalidKind = VIRTUAL_MACHINES.kind;
  await plane.settle();
  assert.equal(restoreOf(plane)?.status?.conditions?.find(({ type }) => type === 'Failure')?.status, 'True');
  plane.api.delete(VIRTUAL_MACHINE_RESTORES, KEY);
  await plane.settle();
  assert.equal(restoreOf(plane), undefined);
  const [claim] = plane.api.all(PERSISTENT_VOLUME_CLAIMS);
  assert.equal(claim?.metadata.name, 'db-root');
  assert.equal(claim.metadata.ownerReferences?.[0]?.uid, plane.api.peek(VIRTUAL_MACHINES, 'ns/db')?.metadata.uid);
});

test('in place, a claim that a guest of another VM uses is kept', async () => {
  const plane = startRestore({ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } });
  const volumes = [{ name: 'shared', persistentVolumeClaim: { claimName: 'db-root' } }];
  plane.api.put(VIRTUAL_MACHINE_INSTANCES, { ...unstored(aVmi('web')), spec: { domain: {}, volumes } });
  await plane.settle();
  const failure = restoreOf(plane)?.status?.conditions?.find(({ type }) => type === 'Failure');
  assert.match(failure?.message ?? '', /^Cannot replace .*: VirtualMachineInstance web also uses it/);
  assert.equal(plane.api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.spec.dataSource, undefined);
});

test('a restore that fails deletes its claims', async () => {
  const plane = startRestore({ spec: { patches: ['{"op":"remove","path":"/spec/nowhere"}'] } });
  await plane.settle();
  assert.equal(restoreOf(plane)?.status?.conditions?.find(({ type }) => type === 'Failure')?.status, 'True');
  assert.deepEqual(claimNames(plane), []);
  assert.equal(plane.api.peek(VIRTUAL_MACHINES, 'ns/db'), undefined);
});
