/** Restores from their wish to their end, and with the controller cut after any of its writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/legacy-uuid.ts';
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
} from '#controllers/restore/restore-world.fixture.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';

const LEGACY = legacyUuid('db');
const KEY = 'ns/back';

interface Scene {
  readonly content?: ContentOverrides;
  readonly spec?: Partial<VirtualMachineRestore['spec']>;
  readonly target?: string;
  /** VMs that are there, with the uuid that they have now. */
  readonly vms?: Readonly<Record<string, string>>;
  /** Whether the target runs. */
  readonly runs?: boolean;
}

function begin({ content, spec, target, vms = {}, runs }: Scene): RestorePlane {
  const plane = new RestorePlane();
  const { api } = plane;
  api.put(VIRTUAL_MACHINE_SNAPSHOTS, bare(aSnapshot()));
  api.put(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, bare(aContent(content)));
  api.put(VOLUME_SNAPSHOTS, bare(aVolumeSnapshot()));
  for (const [name, uuid] of Object.entries(vms)) {
    const strategy = { runStrategy: runs === true ? 'Always' : 'Halted' };
    const vm = api.put(VIRTUAL_MACHINES, bare(aVm({ name, firmware: { uuid }, spec: strategy })));
    const record = aRecord();
    const [owner] = record.metadata.ownerReferences ?? [];
    const ownerReferences = [{ ...owner!, name, uid: vm.metadata.uid }];
    api.put(VIRTUAL_MACHINE_IDENTITIES, bare({ ...record, metadata: { ...record.metadata, name, ownerReferences } }));
    if (runs === true) api.put(VIRTUAL_MACHINE_INSTANCES, bare(aVmi(name)));
  }
  if (vms['db'] !== undefined) {
    const metadata = { ...aClaim().metadata, name: 'db-root', annotations: {}, ownerReferences: undefined };
    api.put(PERSISTENT_VOLUME_CLAIMS, bare({ ...aClaim(), metadata }));
  }
  api.put(VIRTUAL_MACHINE_RESTORES, bare(aRestore({ target, spec, metadata: { finalizers: undefined } })));
  return plane;
}

/** As a client sends it. */
function bare<T extends KubeObject>(object: Stored<T>): T {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** What there is in the end, but for what no two runs have in common. */
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

const OLD = { vm: { firmware: {} }, identity: 'none' } as const;

/** The scene, the name of the target, and its uuid in the end. */
const scenes: Record<string, [Scene, string, string]> = {
  'an existing VM': [{ vms: { db: OTHER_UUID } }, 'db', UUID],
  'an existing VM from a snapshot without uuid (row 4)': [{ vms: { db: OTHER_UUID }, content: OLD }, 'db', LEGACY],
  'an existing VM that runs and is to be stopped': [
    { vms: { db: OTHER_UUID }, runs: true, spec: { targetReadinessPolicy: 'StopTarget' } },
    'db',
    UUID,
  ],
  'an existing VM in place': [{ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } }, 'db', UUID],
  'a VM that was deleted (row 8)': [{}, 'db', UUID],
  'a VM that was deleted, from a snapshot without uuid (row 13)': [{ content: OLD }, 'db', LEGACY],
  'a VM of another name, nobody has the uuid': [{ target: 'copy' }, 'copy', UUID],
  'a VM of another name, the old one has the uuid': [{ target: 'copy', vms: { db: UUID } }, 'copy', 'made-1'],
  'a VM of another name, the old one is to get the legacy uuid': [
    { target: 'copy', vms: { db: '' }, content: OLD },
    'copy',
    'made-1',
  ],
  'claims that belong to nobody': [{ spec: { volumeOwnershipPolicy: 'None' } }, 'db', UUID],
};

for (const [name, [scene, target, uuid]] of Object.entries(scenes)) {
  test(`${name}: from the state after any write the end is the same`, async () => {
    const whole = begin(scene);
    await whole.settle();
    assert.equal(restoreOf(whole)?.status?.complete, true, JSON.stringify(restoreOf(whole)?.status));
    assert.equal(uuidOf(whole, target), uuid);
    assert.ok(whole.writes > 5);
    const wanted = endOf(whole);
    for (let writes = 1; writes <= whole.writes; writes++) {
      const plane = begin(scene);
      plane.cutAfter(writes);
      await plane.settle();
      assert.deepEqual(endOf(plane), wanted, `cut after write ${writes}`);
      assertDecided(plane, [uuid, ...Object.values(scene.vms ?? {})], writes);
    }
  });
}

/** No uuid that nobody decided was ever seen, and no VM was made twice. */
function assertDecided({ api }: RestorePlane, decided: readonly string[], writes: number): void {
  const seen = api.history.filter(({ collection }) => collection === 'virtualmachines.kubevirt.io');
  for (const { object } of seen) {
    assert.ok(decided.includes(firmwareOf(object as object).uuid ?? ''), `cut after write ${writes}`);
  }
  const added = seen.filter(({ type }) => type === 'ADDED').map(({ key }) => key);
  assert.equal(new Set(added).size, added.length, `cut after write ${writes}`);
}

test('a target that is made finds its record at its first start', async () => {
  const plane = begin({});
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
  assert.deepEqual(record?.metadata.finalizers, [RECORD_FINALIZER], 'and it is held as long as the VM is there');
  assert.equal(plane.api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.metadata.ownerReferences?.[0]?.uid, vm?.metadata.uid);
});

test('a record that nobody owns becomes that of the VM that is made', async () => {
  const plane = begin({});
  const { metadata, ...record } = bare(aRecord());
  plane.api.put(VIRTUAL_MACHINE_IDENTITIES, { ...record, metadata: { ...metadata, ownerReferences: undefined } });
  await plane.settle();
  const after = plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db');
  assert.deepEqual(after?.spec, IDENTITY.spec);
  assert.equal(after?.metadata.ownerReferences?.[0]?.uid, plane.api.peek(VIRTUAL_MACHINES, 'ns/db')?.metadata.uid);
  assert.deepEqual(after?.metadata.finalizers, [RECORD_FINALIZER]);
});

test('the record of an existing VM is set back, and its history goes on', async () => {
  const plane = begin({ vms: { db: OTHER_UUID } });
  await plane.settle();
  const record = plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db');
  assert.deepEqual(record?.spec, IDENTITY.spec);
  assert.deepEqual(record?.status?.machine, IDENTITY.status.machine);
  assert.deepEqual(
    record?.status?.history?.map(({ what }) => what),
    ['later', 'restored from snapshot before'],
  );
});

test('who gets a new uuid gets no MACs of the old one, and is told', async () => {
  const plane = begin({ target: 'copy', vms: { db: UUID } });
  await plane.settle();
  const { smbios } = IDENTITY.spec;
  assert.deepEqual(plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/copy')?.spec, { smbios }, 'but is of the same make');
  assert.ok(plane.events.some(({ reason }) => reason === 'FirmwareUUIDRenewed'));
});

test('of two restores to other names one gets the uuid', async () => {
  const plane = begin({ target: 'copy' });
  const other = bare(aRestore({ target: 'third', metadata: { name: 'again', finalizers: undefined } }));
  plane.api.put(VIRTUAL_MACHINE_RESTORES, other);
  await plane.settle();
  assert.deepEqual(new Set([uuidOf(plane, 'copy'), uuidOf(plane, 'third')]), new Set([UUID, 'made-1']));
});

/** The restore is deleted right after each of its writes, and everything comes to rest. */
async function givenUp(scene: Scene, check: (plane: RestorePlane, why: string) => void): Promise<void> {
  const whole = begin(scene);
  await whole.settle();
  for (let writes = 1; writes < whole.writes; writes++) {
    const plane = begin(scene);
    plane.cutAfter(writes);
    plane.onCut = () => void plane.api.delete(VIRTUAL_MACHINE_RESTORES, KEY);
    await plane.settle();
    assert.equal(restoreOf(plane), undefined, `after ${writes} writes`);
    check(plane, `after ${writes} writes`);
  }
}

test('given up, either nothing of the VM has changed or it is restored', async () => {
  const before = begin({ vms: { db: OTHER_UUID } }).api;
  const ends = new Set<boolean>();
  await givenUp({ vms: { db: OTHER_UUID } }, (plane, why) => {
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
  assert.equal(ends.size, 2, 'both ends were seen');
});

test('given up in place, the VM never stays without its disk', () =>
  givenUp({ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } }, (plane, why) => {
    assert.deepEqual(claimNames(plane), ['db-root'], why);
    const restored = plane.api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.spec.dataSource !== undefined;
    assert.equal(uuidOf(plane, 'db') === UUID, restored, why);
  }));

test('given up, a VM that was to be made is whole or not there', () =>
  givenUp({}, (plane, why) => {
    const made = plane.api.peek(VIRTUAL_MACHINES, 'ns/db') !== undefined;
    assert.equal(claimNames(plane).length, made ? 1 : 0, why);
    assert.equal(plane.api.peek(VIRTUAL_MACHINE_IDENTITIES, 'ns/db') !== undefined, made, why);
  }));

test('in place, a VM that cannot become what it was keeps the disks that it got', async () => {
  const plane = begin({ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } });
  plane.refused = VIRTUAL_MACHINES.kind;
  await plane.settle();
  assert.equal(restoreOf(plane)?.status?.conditions?.find(({ type }) => type === 'Failure')?.status, 'True');
  plane.api.delete(VIRTUAL_MACHINE_RESTORES, KEY);
  await plane.settle();
  assert.equal(restoreOf(plane), undefined);
  const [claim] = plane.api.all(PERSISTENT_VOLUME_CLAIMS);
  assert.equal(claim?.metadata.name, 'db-root');
  assert.equal(claim.metadata.ownerReferences?.[0]?.uid, plane.api.peek(VIRTUAL_MACHINES, 'ns/db')?.metadata.uid);
});

test('in place, a claim on which a guest of another VM still runs is kept', async () => {
  const plane = begin({ vms: { db: OTHER_UUID }, spec: { volumeRestorePolicy: 'InPlace' } });
  const volumes = [{ name: 'shared', persistentVolumeClaim: { claimName: 'db-root' } }];
  plane.api.put(VIRTUAL_MACHINE_INSTANCES, { ...bare(aVmi('web')), spec: { domain: {}, volumes } });
  await plane.settle();
  const failure = restoreOf(plane)?.status?.conditions?.find(({ type }) => type === 'Failure');
  assert.match(failure?.message ?? '', /cannot be replaced: VirtualMachineInstance web uses it, too/);
  assert.equal(plane.api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.spec.dataSource, undefined);
});

test('a restore that fails takes away what it made', async () => {
  const plane = begin({ spec: { patches: ['{"op":"remove","path":"/spec/nowhere"}'] } });
  await plane.settle();
  assert.equal(restoreOf(plane)?.status?.conditions?.find(({ type }) => type === 'Failure')?.status, 'True');
  assert.deepEqual(claimNames(plane), []);
  assert.equal(plane.api.peek(VIRTUAL_MACHINES, 'ns/db'), undefined);
});
