/**
 * Attempts to make a restore lose a disk of a protected VM, without any right on VMs. Each test gives a user only the
 * rights that its title names, and ends with the VM, its label and its data in place.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALL_VERBS, CLAIM_URL, claimRights, grant, grantEverywhere, protectedVm } from '#test/bypass/limited-users.ts';
import { renderResponse } from '#test/support/protection.ts';
import { aRestore, aSnapshot, contentOf, diskText, writeDisk } from '#test/support/snapshots.ts';
import type { CallOptions, Loose } from '#test/support/test-api.ts';
import { aClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const VM_URL = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db';
const SNAPSHOT_GROUP_URL = '/apis/snapshot.kubevirt.io/v1beta1/namespaces/default';
const RESTORES = `${SNAPSHOT_GROUP_URL}/virtualmachinerestores`;
const VOLUME_SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots';
const IN_PLACE = { volumeRestorePolicy: 'InPlace' };
const HOLD = 'example.org/hold';
const DELETE_REFUSED = /^403 .*the protected VirtualMachine/;

const snapshotRights = [
  {
    apiGroups: ['snapshot.kubevirt.io'],
    resources: ['virtualmachinesnapshots', 'virtualmachinerestores'],
    verbs: ALL_VERBS,
  },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: ALL_VERBS },
];

type User = NonNullable<CallOptions['user']>;

/** Returns one of our accounts with all rights, to write what it would have written in another version. */
const ownAccount = (name: string): User => ({
  name: `system:serviceaccount:selfsame-system:${name}`,
  groups: ['system:masters', 'system:authenticated'],
});

/** Starts a plane with the stopped, protected VM `db`, its disk `root` and the snapshot `one` of it. */
async function startScene(t: Parameters<typeof startVmPlane>[0], rules: readonly Loose[]) {
  const plane = await startVmPlane(t);
  const eve = await grant(plane, 'eve', rules);
  await plane.apply(aClaim('root'));
  await plane.apply(protectedVm('db', 'root'));
  await writeDisk(plane, 'db', 'precious');
  await plane.apply(aSnapshot('one', 'db'));
  await plane.runVerb('stop', 'db');
  return { plane, eve };
}

async function volumeSnapshotOf(plane: VmPlane, snapshot: string, volume = 'root'): Promise<string> {
  const { spec } = await contentOf(plane, snapshot);
  return spec.volumeBackups.find(({ volumeName }: Loose) => volumeName === volume).volumeSnapshotName;
}

async function call(plane: VmPlane, ...args: Parameters<VmPlane['call']>): Promise<string> {
  return renderResponse(await plane.call(...args));
}

/** Starts the VM and checks that it has its data and its label. */
async function assertDisk(plane: VmPlane): Promise<void> {
  await plane.runVerb('start', 'db');
  await plane.advance(20_000);
  assert.equal(await diskText(plane, 'db'), 'precious');
  const { metadata } = await plane.get('VirtualMachine', 'db');
  assert.equal(metadata.labels['kubevirt.io/vm-delete-protection'], 'true');
}

test('rights on claims and snapshots: a restore does not unprotect a disk that was attached after the snapshot', async (t) => {
  const { plane, eve } = await startScene(t, [...claimRights, ...snapshotRights]);
  await plane.apply(aClaim('ledger'));
  const { domain, volumes } = (await plane.get('VirtualMachine', 'db')).spec.template.spec;
  const disks = [...domain.devices.disks, { name: 'ledger', disk: { bus: 'virtio' } }];
  const template = {
    spec: {
      domain: { devices: { disks } },
      volumes: [...volumes, { name: 'ledger', persistentVolumeClaim: { claimName: 'ledger' } }],
    },
  };
  await plane.server.api.ok('PATCH', VM_URL, { body: { spec: { template } } });
  await plane.settle();
  for (const [name, spec] of Object.entries({ named: { volumeRestorePolicy: 'PrefixTargetName' }, placed: IN_PLACE })) {
    await t.test(`a restore with ${spec.volumeRestorePolicy}`, async () => {
      assert.equal(await call(plane, 'POST', RESTORES, { body: aRestore(name, 'db', 'one', spec), user: eve }), '201');
      await plane.advance(60_000);
      assert.equal((await plane.get('VirtualMachineRestore', name)).status.complete, true);
      const vm = await plane.get('VirtualMachine', 'db');
      assert.equal(vm.spec.template.spec.volumes.length, 1, 'the restore has detached the disk');
      const kept = vm.status.protectedClaims.find((claim: Loose) => claim.name === 'ledger');
      assert.equal(kept.detached, true);
      assert.match(await call(plane, 'DELETE', `${CLAIM_URL}/ledger`, { user: eve }), DELETE_REFUSED);
    });
  }
  await assertDisk(plane);
});

describe('rights on claims, snapshots and restores: the restore object is removed while the disk is being replaced', () => {
  /** Begins a restore while a finalizer of the user holds the old claim. */
  async function beginRestore(plane: VmPlane, eve: User): Promise<void> {
    const { finalizers } = (await plane.get('PersistentVolumeClaim', 'root')).metadata;
    const held = { metadata: { finalizers: [...finalizers, HOLD] } };
    assert.equal(await call(plane, 'PATCH', `${CLAIM_URL}/root`, { body: held, user: eve }), '200');
    assert.equal(
      await call(plane, 'POST', RESTORES, { body: aRestore('back', 'db', 'one', IN_PLACE), user: eve }),
      '201',
    );
    await plane.advance(30_000);
    assert.notEqual((await plane.get('PersistentVolumeClaim', 'root')).metadata.deletionTimestamp, undefined);
  }

  async function releaseClaim(plane: VmPlane, eve: User): Promise<void> {
    const { finalizers } = (await plane.get('PersistentVolumeClaim', 'root')).metadata;
    const body = { metadata: { finalizers: finalizers.filter((one: string) => one !== HOLD) } };
    assert.equal(await call(plane, 'PATCH', `${CLAIM_URL}/root`, { body, user: eve }), '200');
    await plane.advance(30_000);
  }

  test('its finalizer cannot be removed, and the restore is completed', async (t) => {
    const { plane, eve } = await startScene(t, [...claimRights, ...snapshotRights]);
    await beginRestore(plane, eve);
    assert.equal(await call(plane, 'DELETE', `${RESTORES}/back`, { user: eve }), '200');
    for (const finalizers of [null, []]) {
      const body = { metadata: { finalizers } };
      for (const user of [eve, undefined]) {
        const answer = await call(plane, 'PATCH', `${RESTORES}/back`, { body, ...(user && { user }) });
        assert.match(answer, /^403 .*finalizer .* is removed by Selfsame only, because it replaces disks/);
      }
    }
    await releaseClaim(plane, eve);
    assert.equal(await plane.find('VirtualMachineRestore', 'back'), undefined, 'it is complete and gone');
    await assertDisk(plane);
  });

  test('without the restore object, the snapshot is held until the disk is restored', async (t) => {
    const { plane, eve } = await startScene(t, [...claimRights, ...snapshotRights]);
    await beginRestore(plane, eve);
    assert.equal(await call(plane, 'DELETE', `${RESTORES}/back`, { user: eve }), '200');
    const body = { metadata: { finalizers: null } };
    await plane.server.api.ok('PATCH', `${RESTORES}/back`, { body, user: ownAccount('restore-controller') });
    await plane.settle();
    assert.equal(await plane.find('VirtualMachineRestore', 'back'), undefined);
    const name = await volumeSnapshotOf(plane, 'one');
    const refusal = /^403 .*it has the only copy of PersistentVolumeClaim root of a protected VirtualMachine/;
    const deleteSnapshot = () => call(plane, 'DELETE', `${VOLUME_SNAPSHOTS}/${name}`, { user: eve });
    assert.match(await deleteSnapshot(), refusal);
    await releaseClaim(plane, eve);
    assert.equal(await plane.find('PersistentVolumeClaim', 'root'), undefined, 'the old disk is gone');
    assert.match(await deleteSnapshot(), refusal);

    await t.test('a claim that looks like a restored one does not end the hold', async () => {
      const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name };
      const annotations = { 'restore.kubevirt.io/lastRestoreUID': 'back-x', 'selfsame.io/restored-by': 'x' };
      const claim = aClaim('root', { storageClassName: 'other', volumeName: 'empty', dataSource });
      const forged = { ...claim, metadata: { name: 'root', annotations } };
      assert.match(
        await call(plane, 'POST', CLAIM_URL, { body: forged, user: eve }),
        /^403 .*selfsame.io\/restored-by is written by Selfsame only/,
      );
      assert.equal(await call(plane, 'POST', CLAIM_URL, { body: claim, user: eve }), '201');
      await plane.advance(30_000);
      assert.match(await deleteSnapshot(), refusal);
      const key = { metadata: { annotations: { 'selfsame.io/only-copy-of': null } } };
      const answer = await call(plane, 'PATCH', `${VOLUME_SNAPSHOTS}/${name}`, { body: key, user: eve });
      assert.match(answer, /^403 .*written by Selfsame only$/);
    });
    await t.test('another restore brings the disk back, and ends the hold', async () => {
      await plane.apply(aRestore('again', 'db', 'one', IN_PLACE));
      await plane.advance(60_000);
      const { status } = await plane.get('VirtualMachineRestore', 'again');
      assert.equal(status.complete, true, JSON.stringify(status.conditions));
      await assertDisk(plane);
      assert.equal(await deleteSnapshot(), '200');
    });
  });

  test('the hold ends when the VM is not protected any more', async (t) => {
    const { plane, eve } = await startScene(t, [...claimRights, ...snapshotRights]);
    await beginRestore(plane, eve);
    assert.equal(await call(plane, 'DELETE', `${RESTORES}/back`, { user: eve }), '200');
    const body = { metadata: { finalizers: null } };
    await plane.server.api.ok('PATCH', `${RESTORES}/back`, { body, user: ownAccount('restore-controller') });
    await releaseClaim(plane, eve);
    const name = await volumeSnapshotOf(plane, 'one');
    const url = `${SNAPSHOT_GROUP_URL}/virtualmachinesnapshots/one`;
    assert.equal(await call(plane, 'DELETE', url, { user: eve }), '200');
    await plane.advance(30_000);
    assert.notEqual(await plane.find('VolumeSnapshot', name), undefined, 'the garbage collector is refused, too');
    const label = { metadata: { labels: { 'kubevirt.io/vm-delete-protection': null } } };
    await plane.server.api.ok('PATCH', VM_URL, { body: label });
    await plane.advance(60_000);
    assert.equal(await plane.find('VolumeSnapshot', name), undefined);
  });
});

describe('rights on everything in the snapshot group, including statuses', () => {
  const rules = [{ apiGroups: ['snapshot.kubevirt.io'], resources: ['*'], verbs: ['*'] }];

  test('statuses of snapshots, contents and restores cannot be written', async (t) => {
    const { plane, eve } = await startScene(t, rules);
    await plane.apply(aSnapshot('two', 'db'));
    const { url } = await contentOf(plane, 'two');
    await plane.apply(aRestore('back', 'db', 'none'));
    const writes: Record<string, Loose> = {
      [`${SNAPSHOT_GROUP_URL}/virtualmachinesnapshots/one`]: {
        virtualMachineSnapshotContentName: url.slice(url.lastIndexOf('/') + 1),
      },
      [url]: { creationTime: '2040-01-01T00:00:00Z' },
      [`${RESTORES}/back`]: { complete: true },
    };
    for (const [path, status] of Object.entries(writes)) {
      for (const user of [eve, undefined]) {
        const answer = await call(plane, 'PATCH', `${path}/status`, { body: { status }, ...(user && { user }) });
        assert.match(answer, /^403 .*the status of a VirtualMachine\w+ is written by Selfsame only/);
      }
      const labels = { metadata: { labels: { a: 'b' } } };
      assert.equal(await call(plane, 'PATCH', path, { body: labels, user: eve }), '200');
    }
  });

  test('a restore replaces only what its snapshot contains, whatever its status says', async (t) => {
    const { plane, eve } = await startScene(t, rules);
    await plane.apply(aClaim('data2'));
    const vm = await plane.get('VirtualMachine', 'db');
    const { domain, volumes } = vm.spec.template.spec;
    const disks = [...domain.devices.disks, { name: 'data2', disk: { bus: 'virtio' } }];
    const data2 = { name: 'data2', persistentVolumeClaim: { claimName: 'data2' } };
    const template = { spec: { domain: { devices: { disks } }, volumes: [...volumes, data2] } };
    await plane.server.api.ok('PATCH', VM_URL, { body: { spec: { template } } });
    await plane.settle();
    const before = await plane.get('PersistentVolumeClaim', 'data2');
    const volumeSnapshotName = await volumeSnapshotOf(plane, 'one');
    const restores = [{ volumeName: 'data2', persistentVolumeClaim: 'data2', volumeSnapshotName }];
    await plane.beginApply(aRestore('back', 'db', 'one', IN_PLACE));
    const status = { targetUID: vm.metadata.uid, restores };
    const forged = { body: { status }, user: ownAccount('restore-controller') };
    for (let i = 0; i < 5; i++) await plane.call('PATCH', `${RESTORES}/back/status`, forged);
    await plane.advance(60_000);
    assert.equal(await call(plane, 'GET', `${RESTORES}/back`, { user: eve }), '200');
    const after = await plane.get('PersistentVolumeClaim', 'data2');
    assert.deepEqual([after.metadata.uid, after.metadata.deletionTimestamp], [before.metadata.uid, undefined]);
    await assertDisk(plane);
  });
});

test('rights on VolumeSnapshotContents: the data of a snapshot is removed only with its VolumeSnapshot', async (t) => {
  const { plane } = await startScene(t, []);
  const rules = [{ apiGroups: ['snapshot.storage.k8s.io'], resources: ['*'], verbs: ['*'] }];
  const mallory = await grantEverywhere(plane, 'mallory', rules);
  const copy = await volumeSnapshotOf(plane, 'one');
  const name = (await plane.get('VolumeSnapshot', copy)).status.boundVolumeSnapshotContentName;
  const url = `/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/${name}`;
  assert.match(
    await call(plane, 'DELETE', url, { user: mallory }),
    new RegExp(`^403 .*it has the data of VolumeSnapshot default/${copy}; delete that one`),
  );
  const writes: [string, Loose][] = [
    [url, { metadata: { annotations: { 'selfsame.io/snapshot-node': 'elsewhere' } } }],
    [`${url}/status`, { status: { snapshotHandle: 'shared/other' } }],
  ];
  for (const [path, body] of writes)
    assert.match(await call(plane, 'PATCH', path, { body, user: mallory }), /^403 .*written by Selfsame only/);
  const harmless = { metadata: { labels: { team: 'a' } } };
  assert.equal(await call(plane, 'PATCH', url, { body: harmless, user: mallory }), '200');
  assert.equal(await call(plane, 'DELETE', `${VOLUME_SNAPSHOTS}/${copy}`, { user: mallory }), '200');
  await plane.advance(10_000);
  assert.equal(await plane.find('VolumeSnapshotContent', name), undefined);
});

test('rights on VolumeSnapshots: a restore does not use another VolumeSnapshot with the name of the one it needs', async (t) => {
  const { plane, eve } = await startScene(t, [...claimRights, ...snapshotRights]);
  await plane.apply(aClaim('other'));
  const name = await volumeSnapshotOf(plane, 'one');
  const original = await plane.server.api.ok('GET', `${VOLUME_SNAPSHOTS}/${name}`);
  assert.equal(await call(plane, 'DELETE', `${VOLUME_SNAPSHOTS}/${name}`, { user: eve }), '200');
  await plane.settle();
  const { apiVersion, kind, spec } = original;
  const forged = { apiVersion, kind, metadata: { name }, spec };
  assert.equal(await call(plane, 'POST', VOLUME_SNAPSHOTS, { body: forged, user: eve }), '201');
  await plane.settle();
  // The same second, so that the times do not show the difference.
  const created = await plane.server.api.ok('GET', `${VOLUME_SNAPSHOTS}/${name}`);
  assert.equal(created.status?.readyToUse, true);
  const before = await plane.get('PersistentVolumeClaim', 'root');
  await plane.apply(aRestore('back', 'db', 'one', IN_PLACE));
  await plane.advance(60_000);
  const { status } = await plane.get('VirtualMachineRestore', 'back');
  assert.notEqual(status.complete, true);
  const after = await plane.get('PersistentVolumeClaim', 'root');
  assert.deepEqual([after.metadata.uid, after.metadata.deletionTimestamp], [before.metadata.uid, undefined]);
});
