/**
 * Attempts to lose a disk or the persistent state of a protected VM without any right on VMs. Each test gives a user
 * only the rights that its title names, and ends with the VM, its label and its data in place.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATE_LABEL, stateAnnotationOf, SUPERSEDES_ANNOTATION } from '#api/storage/persistent-state.ts';
import {
  CLAIM_URL,
  claimRights,
  grant,
  grantEverywhere,
  protectedVm,
  stateOf,
  waitFor,
} from '#test/bypass/limited-users.ts';
import { labelPatch, locateDisk, renderResponse } from '#test/support/protection.ts';
import { aMigration } from '#test/support/migrating-vm.ts';
import { aRestore, aSnapshot, contentOf, diskText, writeDisk } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane } from '#test/support/vm-plane.ts';

const MARKS_REFUSED = /^403 .*is written by Selfsame only|^403 .*are written by Selfsame only/;
const DELETE_REFUSED = /^403 .*the protected VirtualMachine/;

test('case 1: rights on claims do not unmark the persistent state of a protected VM', async (t) => {
  const plane = await startVmPlane(t);
  const eve = await grant(plane, 'eve', claimRights);
  await plane.apply(protectedVm('db'));
  plane.guest('db').writeState('nv', 'keys');
  await plane.runVerb('stop', 'db');
  const state = await stateOf(plane, 'db');
  const url = `${CLAIM_URL}/${state.metadata.name}`;
  assert.deepEqual((await plane.get('VirtualMachine', 'db')).status.stateClaim, {
    name: state.metadata.name,
    uid: state.metadata.uid,
  });

  const writes: Record<string, Loose> = {
    'all owners and marks': {
      ownerReferences: null,
      labels: { [STATE_LABEL]: null },
      annotations: { [stateAnnotationOf('db')]: null },
    },
    'the owners': { ownerReferences: null },
    'the label': { labels: { [STATE_LABEL]: null } },
    'another value of the label': { labels: { [STATE_LABEL]: 'other' } },
    'the annotation': { annotations: { [stateAnnotationOf('db')]: null } },
    'another value of the annotation': { annotations: { [stateAnnotationOf('db')]: 'false' } },
    'a mark for another VM': { annotations: { [stateAnnotationOf('other')]: 'true' } },
    'a claim that it supersedes': { annotations: { [SUPERSEDES_ANNOTATION]: 'x' } },
    'a claim that replaces it': { annotations: { 'selfsame.io/replaced-by': 'x' } },
    'another owner': {
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x', controller: true }],
    },
  };
  for (const [what, metadata] of Object.entries(writes)) {
    await t.test(`a write of ${what} is refused`, async () => {
      assert.match(renderResponse(await plane.call('PATCH', url, { body: { metadata }, user: eve })), MARKS_REFUSED);
      assert.match(renderResponse(await plane.call('DELETE', url, { user: eve })), DELETE_REFUSED);
    });
  }
  await t.test('labels and owners that do not matter can be changed', async () => {
    const harmless = { labels: { team: 'a' }, annotations: { note: 'b' } };
    const answer = await plane.call('PATCH', url, { body: { metadata: harmless }, user: eve });
    assert.equal(renderResponse(answer), '200');
  });
  await t.test('a newer claim with the marks and the owner of the VM does not take its place', async () => {
    const { labels, annotations, ownerReferences } = state.metadata;
    const forged = {
      ...aClaim('forged'),
      metadata: {
        name: 'forged',
        labels: { [STATE_LABEL]: labels[STATE_LABEL] },
        annotations: {
          [stateAnnotationOf('db')]: annotations[stateAnnotationOf('db')],
          [SUPERSEDES_ANNOTATION]: state.metadata.uid,
        },
        ownerReferences,
      },
    };
    await plane.advance(5000);
    assert.equal(renderResponse(await plane.call('POST', CLAIM_URL, { body: forged, user: eve })), '201');
    await plane.settle();
    await plane.runVerb('start', 'db');
    await plane.advance(10_000);
    assert.equal(plane.guest('db').readState('nv'), 'keys', 'the guest has its own keys');
    assert.equal((await plane.get('VirtualMachine', 'db')).status.stateClaim.uid, state.metadata.uid);
  });
  await t.test('without the label the claim is deleted with the VM', async () => {
    await plane.server.api.ok('PATCH', `/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db`, {
      body: labelPatch(null),
    });
    await plane.settle();
    await plane.delete('VirtualMachine', 'db');
    await plane.advance(10_000);
    assert.equal(await plane.find('PersistentVolumeClaim', state.metadata.name), undefined);
  });
});

test('case 2: a migration does not delete a disk of a protected VM that is marked as the state of another', async (t) => {
  const plane = await startVmPlane(t);
  const eve = await grant(plane, 'eve', [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]);
  await plane.apply(aClaim('gold'));
  await plane.apply(aVmOnClaim('ledger', 'gold', { runStrategy: 'Always' }));
  await writeDisk(plane, 'ledger', 'precious');
  await plane.runVerb('stop', 'ledger');
  const label = { metadata: { labels: { [STATE_LABEL]: 'x' } } };

  await t.test('the mark is refused on a disk of a protected VM', async () => {
    await plane.apply({ kind: 'VirtualMachine', ...labelPatch('true'), ...named('ledger', labelPatch('true')) });
    const answer = await plane.call('PATCH', `${CLAIM_URL}/gold`, { body: label, user: eve });
    assert.match(renderResponse(answer), MARKS_REFUSED);
  });
  await t.test('a mark from before the protection does not make it the state of another VM', async () => {
    await plane.apply({ kind: 'VirtualMachine', ...named('ledger', labelPatch('false')) });
    assert.equal(renderResponse(await plane.call('PATCH', `${CLAIM_URL}/gold`, { body: label, user: eve })), '200');
    await plane.apply({ kind: 'VirtualMachine', ...named('ledger', labelPatch('true')) });
    await plane.apply(aVm('x', { runStrategy: 'Always' }, { domain: { devices: { tpm: { persistent: true } } } }));
    await plane.advance(10_000);
    const { status } = await plane.get('VirtualMachine', 'x');
    const failure = status.conditions.find(({ type }: Loose) => type === 'Failure');
    assert.match(failure.message, /"gold" is marked as its persistent state, but is a disk of VirtualMachine "ledger"/);
    assert.deepEqual(plane.guests('x'), []);
    const gold = await plane.get('PersistentVolumeClaim', 'gold');
    const claim = { claimName: 'gold', claimUID: gold.metadata.uid };
    assert.equal(await plane.runVerb('releasestate', 'x', claim as Loose), '200');
    await plane.advance(10_000);
    assert.equal(plane.guests('x').length, 1, 'the VM starts with its own state');
    assert.equal(await diskText(plane, 'ledger'), 'precious');
  });
  await t.test('a claim that became a disk while it was the state of another VM is not deleted', async () => {
    await plane.apply({ ...aClaim('old'), ...named('old', { metadata: { labels: { [STATE_LABEL]: 'y' } } }) });
    await plane.apply(aVm('y', { runStrategy: 'Always' }, { domain: { devices: { tpm: { persistent: true } } } }));
    assert.equal((await plane.get('VirtualMachine', 'y')).status.stateClaim.name, 'old');
    const keeper = aVmOnClaim('keeper', 'old', { runStrategy: 'Halted' });
    await plane.apply({ ...keeper, ...named('keeper', labelPatch('true')) });
    await plane.apply(aMigration('move', 'y'));
    await plane.advance(60_000);
    assert.equal((await plane.get('VirtualMachineInstanceMigration', 'move')).status.phase, 'Succeeded');
    const kept = await plane.get('PersistentVolumeClaim', 'old');
    assert.equal(kept.metadata.deletionTimestamp, undefined);
    assert.equal(kept.metadata.annotations['selfsame.io/protected-vms'], 'keeper');
    const { stateClaim } = (await plane.get('VirtualMachine', 'y')).status;
    assert.notEqual(stateClaim.name, 'old');
    assert.equal((await stateOf(plane, 'y')).metadata.name, stateClaim.name);
  });
});

test('case 2: a detached disk of a protected VM does not become the state of another VM', async (t) => {
  const plane = await startVmPlane(t);
  const eve = await grant(plane, 'eve', claimRights);
  for (const name of ['root', 'gold']) await plane.apply(aClaim(name));
  const unprotected = { ...protectedVm('db', 'root'), metadata: { name: 'db' } };
  unprotected.spec.runStrategy = 'Halted';
  const { domain, volumes } = unprotected.spec.template.spec;
  const withGold = {
    domain: { devices: { ...domain.devices, disks: [...domain.devices.disks, { name: 'gold', disk: {} }] } },
    volumes: [...volumes, { name: 'gold', persistentVolumeClaim: { claimName: 'gold' } }],
  };
  await plane.apply(unprotected);
  const patchVm = (body: Loose) =>
    plane.server.api.ok('PATCH', '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db', { body });
  await patchVm({ spec: { template: { spec: withGold } } });
  await plane.settle();
  // Marks from before the protection.
  const marks = { labels: { [STATE_LABEL]: 'x' } };
  const marked = await plane.call('PATCH', `${CLAIM_URL}/gold`, { body: { metadata: marks }, user: eve });
  assert.equal(renderResponse(marked), '200');
  await patchVm(labelPatch('true'));
  await plane.settle();
  await patchVm({ spec: { template: { spec: { domain: { devices: { disks: domain.devices.disks } }, volumes } } } });
  await plane.settle();
  const gold = (await plane.get('VirtualMachine', 'db')).status.protectedClaims.find(
    ({ name }: Loose) => name === 'gold',
  );
  assert.equal(gold.detached, true);

  await plane.apply(aVm('x', { runStrategy: 'Always' }, { domain: { devices: { tpm: { persistent: true } } } }));
  await plane.advance(20_000);
  const { status } = await plane.get('VirtualMachine', 'x');
  assert.equal(status.stateClaim, undefined);
  assert.deepEqual(plane.guests('x'), []);
  const failure = status.conditions.find(({ type }: Loose) => type === 'Failure');
  assert.match(failure.message, /"gold" is marked as its persistent state, but is a disk of VirtualMachine "db"/);
  const claim = { claimName: 'gold', claimUID: gold.uid } as Loose;
  assert.match(await plane.runVerb('adoptstate', 'x', claim), /^409 .*is a disk of VirtualMachine "db"/);
  assert.equal(await plane.runVerb('releasestate', 'x', claim), '200');
  await plane.advance(20_000);
  assert.equal(plane.guests('x').length, 1, 'the VM starts with its own state');
});

test('case 3: an annotation on the state claim of a restore does not make it delete a disk', async (t) => {
  const plane = await startVmPlane(t);
  const eve = await grant(plane, 'eve', claimRights);
  await plane.apply(aClaim('root'));
  await plane.apply(protectedVm('db', 'root'));
  await writeDisk(plane, 'db', 'precious');
  await plane.apply(aSnapshot('one', 'db'));
  await plane.runVerb('stop', 'db');
  // After a restore in place the VM owns its disk.
  await plane.apply(aRestore('first', 'db', 'one', { volumeRestorePolicy: 'InPlace' }));
  assert.equal((await plane.get('VirtualMachineRestore', 'first')).status.complete, true);
  const disk = await plane.get('PersistentVolumeClaim', 'root');
  const before = await stateOf(plane, 'db');

  await plane.beginApply(aRestore('second', 'db', 'one', { volumeRestorePolicy: 'PrefixTargetName' }));
  const isOwnedBy = (kind: string) => async () =>
    (await plane.list('PersistentVolumeClaim')).find(
      ({ metadata }) =>
        metadata.labels?.[STATE_LABEL] === 'db' &&
        metadata.name !== before.metadata.name &&
        metadata.ownerReferences?.[0]?.kind === kind,
    );
  const body = { metadata: { annotations: { [SUPERSEDES_ANNOTATION]: disk.metadata.uid } } };
  // Both before and after the restore has handed the claim over to the VM.
  const forged = await waitFor(plane, isOwnedBy('VirtualMachineRestore'));
  const early = await plane.call('PATCH', `${CLAIM_URL}/${forged.metadata.name}`, { body, user: eve });
  await waitFor(plane, isOwnedBy('VirtualMachine'));
  await waitFor(plane, async () => {
    const { metadata } = await plane.get('PersistentVolumeClaim', forged.metadata.name);
    return metadata.annotations['selfsame.io/protected-vms'];
  });
  const late = await plane.call('PATCH', `${CLAIM_URL}/${forged.metadata.name}`, { body, user: eve });
  await plane.advance(30_000);
  assert.equal(renderResponse(early), '200', 'a claim of the restore is not a claim of the VM yet');
  assert.match(renderResponse(late), MARKS_REFUSED);
  assert.equal((await plane.get('VirtualMachineRestore', 'second')).status.complete, true);
  const kept = await plane.find('PersistentVolumeClaim', 'root');
  assert.equal(kept?.metadata.uid, disk.metadata.uid, 'the disk is kept');
  assert.equal(kept.metadata.deletionTimestamp, undefined);
  assert.equal(await plane.find('PersistentVolumeClaim', before.metadata.name), undefined, 'the old state is replaced');
  assert.equal((await stateOf(plane, 'db')).metadata.uid, forged.metadata.uid);
  assert.equal((await plane.get('VirtualMachine', 'db')).status.stateClaim.uid, forged.metadata.uid);
});

function named(name: string, { metadata }: Loose): Loose {
  return { metadata: { name, ...metadata } };
}

test('case 7: rights on snapshots do not change what a restore writes to a VM', async (t) => {
  const plane = await startVmPlane(t);
  const snapshotRights = [{ apiGroups: ['snapshot.kubevirt.io'], resources: ['*'], verbs: ['*'] }];
  const eve = await grant(plane, 'eve', snapshotRights);
  const vmRights = { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: ['update'] };
  const alice = await grant(plane, 'alice', [...snapshotRights, vmRights]);
  await plane.apply(protectedVm('db'));
  await plane.runVerb('stop', 'db');
  await plane.apply(aSnapshot('one', 'db'));
  const { url, ...content } = await contentOf(plane, 'one');
  const contents = url.slice(0, url.lastIndexOf('/'));
  const restores = contents.replace('virtualmachinesnapshotcontents', 'virtualmachinerestores');
  const forgedSpec = structuredClone(content.spec);
  const { spec } = forgedSpec.source.virtualMachine.spec.template;
  spec.domain.firmware = { ...spec.domain.firmware, uuid: 'aaaaaaaa-b3ef-428c-8861-06e72d69f223' };
  const CONTENT_REFUSED = /^403 .*is written by Selfsame only; take a VirtualMachineSnapshot$/;

  await t.test('the spec of a content cannot be changed, not even by an administrator', async () => {
    for (const options of [{ user: eve }, {}]) {
      const body = { spec: forgedSpec };
      assert.match(renderResponse(await plane.call('PATCH', url, { body, ...options })), CONTENT_REFUSED);
      const replaced = { ...content, spec: forgedSpec };
      assert.match(renderResponse(await plane.call('PUT', url, { body: replaced, ...options })), CONTENT_REFUSED);
    }
  });
  await t.test('a content cannot be created', async () => {
    const { apiVersion, kind } = content;
    const body = { apiVersion, kind, metadata: { name: 'forged' }, spec: forgedSpec };
    assert.match(renderResponse(await plane.call('POST', contents, { body, user: eve })), CONTENT_REFUSED);
  });
  await t.test('its labels can be changed', async () => {
    const body = { metadata: { labels: { team: 'a' } } };
    assert.equal(renderResponse(await plane.call('PATCH', url, { body, user: eve })), '200');
  });
  const patches = ['{"op": "replace", "path": "/spec/template/spec/domain/memory/guest", "value": "256Mi"}'];
  await t.test('a restore with patches requires the right to update the VM', async () => {
    const body = aRestore('patched', 'copy', 'one', { patches });
    const answer = renderResponse(await plane.call('POST', restores, { body, user: eve }));
    assert.match(answer, /^403 .*patches require the right to update VirtualMachine "copy"/);
    assert.equal(renderResponse(await plane.call('POST', restores, { body, user: alice })), '201');
    await plane.advance(30_000);
    const { status } = await plane.get('VirtualMachineRestore', 'patched');
    assert.equal(status.complete, true, JSON.stringify(status.conditions));
    assert.equal((await plane.get('VirtualMachine', 'copy')).spec.template.spec.domain.memory.guest, '256Mi');
  });
  await t.test('a restore without patches does not', async () => {
    const body = aRestore('plain', 'db', 'one');
    assert.equal(renderResponse(await plane.call('POST', restores, { body, user: eve })), '201');
    const patched = { spec: { patches } };
    const answer = await plane.call('PATCH', `${restores}/plain`, { body: patched, user: eve });
    assert.match(renderResponse(answer), /^4\d\d /);
    await plane.advance(30_000);
    assert.equal((await plane.get('VirtualMachineRestore', 'plain')).status.complete, true);
    assert.equal((await plane.get('VirtualMachine', 'db')).spec.template.spec.domain.memory.guest, '128Mi');
  });
});

const VOLUME_SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots';
const IN_PLACE = { volumeRestorePolicy: 'InPlace' };

test('case 4: a restore in place keeps its snapshot until the new disk has the data', async (t) => {
  const plane = await startVmPlane(t);
  const volumeSnapshotRights = { apiGroups: ['snapshot.storage.k8s.io'], resources: ['*'], verbs: ['*'] };
  const eve = await grant(plane, 'eve', [...claimRights, volumeSnapshotRights]);
  await plane.apply(aClaim('root'));
  await plane.apply(protectedVm('db', 'root'));
  await writeDisk(plane, 'db', 'precious');
  await plane.apply(aSnapshot('one', 'db'));
  await plane.runVerb('stop', 'db');
  const snapshotOf = async (name: string): Promise<string> => {
    const { spec } = await contentOf(plane, name);
    return spec.volumeBackups.find(({ volumeName }: Loose) => volumeName === 'root').volumeSnapshotName;
  };
  const finalizers = (values: string[] | null) =>
    plane.server.api.ok('PATCH', `${CLAIM_URL}/root`, { body: { metadata: { finalizers: values } }, user: eve });

  await t.test('the snapshot cannot be deleted while the old claim is held', async () => {
    const before = await plane.get('PersistentVolumeClaim', 'root');
    await finalizers([...before.metadata.finalizers, 'example.org/hold']);
    await plane.apply(aRestore('back', 'db', 'one', IN_PLACE));
    const held = await plane.get('PersistentVolumeClaim', 'root');
    assert.notEqual(held.metadata.deletionTimestamp, undefined, 'the restore replaces the claim');
    const url = `${VOLUME_SNAPSHOTS}/${await snapshotOf('one')}`;
    const refusal = /^403 .*VirtualMachineRestore back needs it/;
    assert.match(renderResponse(await plane.call('DELETE', url, { user: eve })), refusal);
    assert.match(renderResponse(await plane.call('DELETE', VOLUME_SNAPSHOTS, { user: eve })), refusal);
    const { metadata } = await plane.server.api.ok('GET', url);
    const hold = Object.keys(metadata.annotations).find((key) => key.startsWith('needed-by-restore.selfsame.io/'));
    const unheld = { body: { metadata: { annotations: { [hold!]: null } } }, user: eve };
    assert.match(renderResponse(await plane.call('PATCH', url, unheld)), /^403 .*are written by Selfsame only$/);
    assert.match(renderResponse(await plane.call('DELETE', url, { user: eve })), refusal);
    await plane.server.api.ok('PATCH', `${CLAIM_URL}/root`, {
      body: { metadata: { finalizers: held.metadata.finalizers.filter((one: string) => !one.startsWith('example')) } },
      user: eve,
    });
    await plane.advance(30_000);
    assert.equal((await plane.get('VirtualMachineRestore', 'back')).status.complete, true);
    await plane.runVerb('start', 'db');
    await plane.advance(10_000);
    assert.equal(await diskText(plane, 'db'), 'precious');
  });
  await t.test('afterwards the snapshot can be deleted', async () => {
    const name = await snapshotOf('one');
    assert.equal(renderResponse(await plane.call('DELETE', `${VOLUME_SNAPSHOTS}/${name}`, { user: eve })), '200');
    await plane.advance(10_000);
    assert.equal(await plane.find('VolumeSnapshot', name), undefined);
  });
  await t.test('a restore whose snapshot is gone replaces nothing', async () => {
    await plane.runVerb('stop', 'db');
    const before = await plane.get('PersistentVolumeClaim', 'root');
    await plane.apply(aRestore('again', 'db', 'one', IN_PLACE));
    await plane.advance(30_000);
    const { status } = await plane.get('VirtualMachineRestore', 'again');
    assert.notEqual(status.complete, true);
    const after = await plane.get('PersistentVolumeClaim', 'root');
    assert.deepEqual([after.metadata.uid, after.metadata.deletionTimestamp], [before.metadata.uid, undefined]);
    assert.equal(await diskText(plane, 'db'), 'precious');
  });
});

test('case 5: a disk that is already being deleted is kept when its VM is protected', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('root'));
  await plane.apply(aVmOnClaim('db', 'root', { runStrategy: 'Always' }));
  await writeDisk(plane, 'db', 'precious');
  const { volumeName } = (await plane.get('PersistentVolumeClaim', 'root')).spec;
  const { node } = await locateDisk(plane, 'default', 'db');
  await plane.delete('PersistentVolumeClaim', 'root');
  const vmUrl = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db';
  const label = (value: string | null) => plane.call('PATCH', vmUrl, { body: labelPatch(value) });
  const policyOf = async () => (await plane.get('PersistentVolume', volumeName)).spec.persistentVolumeReclaimPolicy;
  const conditionOf = async () => {
    const { status } = await plane.get('VirtualMachine', 'db');
    return status.conditions.find(({ type }: Loose) => type === 'ClaimBeingDeleted')?.message;
  };

  await t.test('labelling warns, and a condition says what becomes of the data', async () => {
    assert.match(await conditionOf(), /its data is deleted when the VM stops/);
    const { status, warnings } = await label('true');
    assert.equal(status, 200);
    assert.match(warnings.join('\n'), /PersistentVolumeClaim "root" .*is already being deleted/);
    await plane.settle();
    assert.match(await conditionOf(), new RegExp(`its data stays in PersistentVolume "${volumeName}"`));
    assert.equal(await policyOf(), 'Retain');
  });
  await t.test('without the label the volume has its own reclaim policy again', async () => {
    await label(null);
    await plane.settle();
    assert.equal(await policyOf(), 'Delete');
    await label('true');
    await plane.settle();
    assert.equal(await policyOf(), 'Retain');
  });
  await t.test('the volume is kept when the VM stops, and can be used again', async () => {
    // The VM does not restart without its claim, so it is stopped by deleting its instance.
    await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'db' }, spec: { runStrategy: 'Halted' } });
    await plane.advance(60_000);
    assert.deepEqual(plane.guests('db'), []);
    assert.equal(await plane.find('PersistentVolumeClaim', 'root'), undefined, 'the deletion was accepted earlier');
    assert.equal((await plane.get('PersistentVolume', volumeName)).status.phase, 'Released');
    assert.equal(node.read(volumeName), 'precious');
    await plane.server.api.ok('PATCH', `/api/v1/persistentvolumes/${volumeName}`, {
      body: { spec: { claimRef: null } },
    });
    await plane.apply(aClaim('root', { volumeName, storageClassName: 'local' }));
    await plane.runVerb('start', 'db');
    await plane.advance(20_000);
    assert.equal(await diskText(plane, 'db'), 'precious');
    assert.equal(plane.guests('db').length, 1);
    assert.equal((await plane.get('VirtualMachine', 'db')).metadata.labels['kubevirt.io/vm-delete-protection'], 'true');
  });
});

test('case 6: a disk that is detached from a protected VM stays protected', async (t) => {
  const plane = await startVmPlane(t);
  const verbRights = {
    apiGroups: ['subresources.kubevirt.io'],
    resources: ['virtualmachines/removevolume', 'virtualmachines/releasedisk'],
    verbs: ['update'],
  };
  const eve = await grant(plane, 'eve', [...claimRights, verbRights]);
  const vmRights = { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: ['update', 'patch', 'get'] };
  const alice = await grant(plane, 'alice', [verbRights, vmRights]);
  for (const name of ['root', 'extra', 'more']) await plane.apply(aClaim(name));
  await plane.apply(protectedVm('db', 'root'));
  const verb = (name: string, body: Loose, user?: Loose) =>
    plane.call('PUT', `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/db/${name}`, {
      body,
      ...(user && { user }),
    });
  for (const claimName of ['extra', 'more']) {
    const volumeSource = { persistentVolumeClaim: { claimName, hotpluggable: true } };
    const disk = { name: claimName, disk: { bus: 'scsi' } };
    assert.equal((await verb('addvolume', { name: claimName, disk, volumeSource })).status, 202);
    await plane.advance(10_000);
  }
  await t.test('detaching requires the right to update the VM', async () => {
    const answer = renderResponse(await verb('removevolume', { name: 'extra' }, eve));
    assert.match(answer, /^403 .*User "eve" cannot update resource "virtualmachines"/);
    for (const name of ['extra', 'more'])
      assert.equal(renderResponse(await verb('removevolume', { name }, alice)), '202');
    await plane.advance(30_000);
    assert.deepEqual((await plane.get('VirtualMachine', 'db')).spec.template.spec.volumes.length, 1);
  });
  await t.test('the detached claims cannot be deleted', async () => {
    for (const name of ['extra', 'more']) {
      const answer = renderResponse(await plane.call('DELETE', `${CLAIM_URL}/${name}`, { user: eve }));
      assert.match(answer, /^403 .*it is a disk of the protected VirtualMachine db;/);
    }
    const { protectedClaims } = (await plane.get('VirtualMachine', 'db')).status;
    assert.deepEqual(
      protectedClaims.map(({ name, detached }: Loose) => [name, detached ?? false]),
      [
        ['extra', true],
        ['more', true],
        ['root', false],
      ],
    );
  });
  await t.test('somebody who may update the VM releases one by name', async () => {
    const body = { claimName: 'extra' };
    assert.match(renderResponse(await verb('releasedisk', body, eve)), /^403 .*User "eve" cannot update/);
    const attached = renderResponse(await verb('releasedisk', { claimName: 'root' }, alice));
    assert.match(attached, /^409 .*PersistentVolumeClaim "root": it is a disk of the VM; remove it from the VM first/);
    const other = renderResponse(await verb('releasedisk', { claimName: 'other' }, alice));
    assert.match(other, /^409 .*PersistentVolumeClaim "other": the VM does not protect it/);
    assert.equal(renderResponse(await verb('releasedisk', body, alice)), '200');
    await plane.settle();
    assert.equal(renderResponse(await plane.call('DELETE', `${CLAIM_URL}/extra`, { user: eve })), '200');
    assert.match(renderResponse(await plane.call('DELETE', `${CLAIM_URL}/more`, { user: eve })), DELETE_REFUSED);
  });
  await t.test('without the label all of them can be deleted', async () => {
    await plane.apply({ kind: 'VirtualMachine', ...named('db', labelPatch('false')) });
    assert.equal((await plane.get('VirtualMachine', 'db')).status.protectedClaims, undefined);
    assert.equal(renderResponse(await plane.call('DELETE', `${CLAIM_URL}/more`, { user: eve })), '200');
  });
});

test('rights on volumes do not make a node remove the data of a protected VM', async (t) => {
  const plane = await startVmPlane(t);
  const rules = [{ apiGroups: [''], resources: ['persistentvolumes', 'persistentvolumes/status'], verbs: ['*'] }];
  const eve = await grantEverywhere(plane, 'eve', rules);
  await plane.apply(aClaim('root'));
  await plane.apply(protectedVm('db', 'root'));
  await writeDisk(plane, 'db', 'precious');
  await plane.runVerb('stop', 'db');
  const { volumeName } = (await plane.get('PersistentVolumeClaim', 'root')).spec;
  const url = `/api/v1/persistentvolumes/${volumeName}`;
  const volume = await plane.server.api.ok('GET', url);
  const home = volume.metadata.annotations['selfsame.io/volume-node'];
  const annotated = (annotations: Loose) => ({ metadata: { annotations } });

  const writes: Record<string, Loose> = {
    'another node for the data, and a leftover on its own': annotated({
      'selfsame.io/volume-node': 'elsewhere',
      'selfsame.io/leftover-node': home,
    }),
    'a leftover': annotated({ 'selfsame.io/leftover-node': home }),
    'another node for the data': annotated({ 'selfsame.io/volume-node': 'elsewhere' }),
    'no node for the data': annotated({ 'selfsame.io/volume-node': null }),
    'an incoming copy': annotated({ 'selfsame.io/incoming-node': home, 'selfsame.io/incoming-migration': 'x' }),
    'another node that copies': annotated({ 'selfsame.io/volume-copy-node': home }),
    'another reclaim policy of its own': annotated({ 'selfsame.io/reclaim-policy': 'Delete' }),
    'another provisioner': annotated({ 'pv.kubernetes.io/provisioned-by': 'example.org/other' }),
  };
  for (const [what, body] of Object.entries(writes)) {
    await t.test(`a write of ${what} is refused`, async () => {
      for (const path of [url, `${url}/status`]) {
        const answer = await plane.call('PATCH', path, { body, user: eve });
        assert.match(renderResponse(answer), /^403 .*holds a disk of the protected VirtualMachine default\/db/);
      }
    });
  }
  await t.test('another location of the data is refused, as for every volume', async () => {
    const csi = { volumeHandle: 'other', volumeAttributes: { node: 'elsewhere' } };
    const answer = await plane.call('PATCH', url, { body: { spec: { csi } }, user: eve });
    assert.match(renderResponse(answer), /^422 .*is immutable after creation/);
  });
  await t.test('labels and other annotations can be changed', async () => {
    const body = { metadata: { labels: { team: 'a' }, annotations: { note: 'b' } } };
    assert.equal(renderResponse(await plane.call('PATCH', url, { body, user: eve })), '200');
  });
  await t.test('the guest can still be moved to another node', async () => {
    await plane.runVerb('start', 'db');
    await plane.advance(10_000);
    assert.equal(await diskText(plane, 'db'), 'precious');
    await plane.apply(aMigration('move', 'db'));
    await plane.advance(60_000);
    assert.equal((await plane.get('VirtualMachineInstanceMigration', 'move')).status.phase, 'Succeeded');
    const { metadata } = await plane.server.api.ok('GET', url);
    assert.notEqual(metadata.annotations['selfsame.io/volume-node'], home);
    assert.equal(metadata.annotations['selfsame.io/leftover-node'], undefined, 'the old copy is removed');
    assert.equal(await diskText(plane, 'db'), 'precious');
  });
});

test('rights on the status of VMs do not release a disk of a protected VM', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  const rules = [{ apiGroups: ['kubevirt.io'], resources: ['virtualmachines/status'], verbs: ['*'] }];
  const eve = await grant(plane, 'eve', [...claimRights, ...rules]);
  await plane.apply(aClaim('root'));
  await plane.apply(protectedVm('db', 'root'));
  const url = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/db/status';
  for (const status of [{ stateClaim: null }, { stateClaim: { uid: 'x' } }, { protectedClaims: null }]) {
    const answer = await plane.call('PATCH', url, { body: { status }, user: eve });
    assert.match(renderResponse(answer), /^403 .*are written by Selfsame only/);
  }
  const body = { status: { machineTypeRestartRequired: null } };
  assert.equal(renderResponse(await plane.call('PATCH', url, { body, user: eve })), '200');
});

test('while none of our components runs, the API server keeps the claims of a protected VM', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  const eve = await grant(plane, 'eve', claimRights);
  await plane.apply(aClaim('root'));
  await plane.apply(protectedVm('db', 'root'));
  await plane.apply(aSnapshot('one', 'db'));
  const state = await stateOf(plane, 'db');
  const { url } = await contentOf(plane, 'one');
  await plane.server.parts.stop();
  const unmarked = { ownerReferences: null, labels: { [STATE_LABEL]: null } };
  const replaced = { annotations: { 'selfsame.io/replaced-by': 'x' } };
  for (const [name, metadata] of [
    [state.metadata.name, unmarked],
    [state.metadata.name, replaced],
    ['root', { labels: { [STATE_LABEL]: 'x' } }],
    ['root', replaced],
  ]) {
    const answer = await plane.call('PATCH', `${CLAIM_URL}/${name}`, { body: { metadata }, user: eve });
    assert.match(renderResponse(answer), MARKS_REFUSED);
  }
  for (const name of [state.metadata.name, 'root'])
    assert.match(renderResponse(await plane.call('DELETE', `${CLAIM_URL}/${name}`, { user: eve })), DELETE_REFUSED);
  const forged = await plane.call('PATCH', url, { body: { spec: { virtualMachineSnapshotName: 'x' } } });
  assert.match(renderResponse(forged), /^403 /);
});
