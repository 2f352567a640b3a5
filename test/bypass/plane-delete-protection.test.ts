/** Delete protection on the whole plane: a protected VM lives as any other does, but nobody deletes it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CRD,
  diskPlace,
  json,
  LABEL,
  labelled,
  makeNamespace,
  makeProtected,
  markAt,
  placesOf,
  PRECIOUS,
  refusalOf,
  told,
  worldOf,
} from '#test/support/protection.ts';
import { aRestore, aSnapshot, diskOf, writeDisk } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const HALTED = { runStrategy: 'Halted' };
const VMS = placesOf('default').vms;
const LABEL_PATH = `/metadata/labels/${LABEL.replace('/', '~1')}`;
const REASON = 'selfsame.io/delete-protection-reason';
const BY = 'selfsame.io/delete-protection-by';
const AT = 'selfsame.io/delete-protection-at';

const withLabels = (name: string, labels: Loose): Loose => {
  const vm = aVm(name, HALTED);
  return { ...vm, metadata: { name, labels } };
};
const tryDelete = async (plane: VmPlane, name: string) => told(await plane.call('DELETE', `${VMS}/${name}`));
const isRefused = (answer: string, vm: string) => {
  assert.match(answer, /^422 /);
  assert.ok(answer.endsWith(refusalOf(vm)), answer);
};

const values: Record<string, { labels?: Loose; refused?: true; warned?: true }> = {
  'the label true': { labels: { [LABEL]: 'true' }, refused: true },
  'the label True': { labels: { [LABEL]: 'True' }, refused: true },
  'the label False': { labels: { [LABEL]: 'False' } },
  'the label false': { labels: { [LABEL]: 'false' } },
  'the label niceValue': { labels: { [LABEL]: 'niceValue' } },
  'the label TRUE': { labels: { [LABEL]: 'TRUE' }, warned: true },
  'the label yes': { labels: { [LABEL]: 'yes' }, warned: true },
  'the label 1': { labels: { [LABEL]: '1' }, warned: true },
  'the label on': { labels: { [LABEL]: 'on' }, warned: true },
  'the label with nothing in it': { labels: { [LABEL]: '' } },
  'other labels only': { labels: { app: 'true' } },
  'no labels in it': { labels: {} },
  'no labels at all': {},
};

test('what protects, and what does not', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  for (const [index, [sentence, { labels, refused, warned }]] of Object.entries(values).entries()) {
    await t.test(`a VM with ${sentence} is ${refused ? 'kept' : 'deleted'}`, async () => {
      const name = `vm-${index}`;
      const made = await plane.post(withLabels(name, labels));
      assert.equal(made.status, 201, made.text);
      const warning = `label ${LABEL}: "${labels?.[LABEL]}" does not protect the VirtualMachine; only "true" and "True" do`;
      assert.deepEqual(made.warnings, warned ? [warning] : []);
      await plane.settle();
      const { status } = await plane.get('VirtualMachine', name);
      assert.equal(status.deleteProtected, refused, 'absent where it is not');
      const answer = await tryDelete(plane, name);
      await plane.settle();
      if (refused) isRefused(answer, name);
      else assert.equal(answer, '200');
      assert.equal((await plane.find('VirtualMachine', name)) !== undefined, refused ?? false);
    });
  }

  const ends: Record<string, Loose> = {
    'the label removed by a JSON patch': json({ op: 'remove', path: LABEL_PATH }),
    'the label replaced with false': json({ op: 'replace', path: LABEL_PATH, value: 'false' }),
    'the label removed by a merge patch': { body: labelled(null) },
  };
  for (const [index, [sentence, patch]] of Object.entries(ends).entries()) {
    await t.test(`${sentence}: then it goes`, async () => {
      const name = `ends-${index}`;
      await plane.apply(withLabels(name, { [LABEL]: 'true' }));
      isRefused(await tryDelete(plane, name), name);
      assert.equal((await plane.call('PATCH', `${VMS}/${name}`, patch)).status, 200);
      // At once: nobody waits for a controller.
      assert.equal(await tryDelete(plane, name), '200');
      await plane.settle();
      assert.equal(await plane.find('VirtualMachine', name), undefined);
    });
  }

  await t.test('a value that looks meant is warned of when it is set, not at each later write', async () => {
    await plane.apply(withLabels('meant', {}));
    const url = `${VMS}/meant`;
    assert.equal((await plane.call('PATCH', url, { body: labelled('YES') })).warnings.length, 1);
    const later = await plane.call('PATCH', url, { body: { metadata: { annotations: { a: 'b' } } } });
    assert.deepEqual(later.warnings, []);
  });
});

test('a protected VM lives as any other', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('db-data'));
  await plane.apply(aVmOnClaim('db', 'db-data', { runStrategy: 'Always' }));
  const alice = { name: 'alice', groups: ['system:masters', 'system:authenticated'] };
  const { uid } = (await plane.get('VirtualMachine', 'db')).metadata;
  const keeps = async () => {
    assert.equal((await plane.get('VirtualMachine', 'db')).metadata.uid, uid);
    isRefused(await tryDelete(plane, 'db'), 'db');
  };

  await t.test('who protects it, when and why is written down and told', async () => {
    const annotations = { [REASON]: 'holds the ledger', [BY]: 'somebody else', [AT]: 'never' };
    const body = { metadata: { labels: { [LABEL]: 'true' }, annotations } };
    await plane.server.api.ok('PATCH', `${VMS}/db`, { body, user: alice });
    await plane.settle();
    const { metadata, status } = await plane.get('VirtualMachine', 'db');
    assert.equal(status.deleteProtected, true);
    assert.equal(metadata.annotations[BY], 'alice');
    assert.match(metadata.annotations[AT], /^\d{4}-\d\d-\d\dT/);
    const want = 'DeleteProtectionEnabled Protected from deletion by alice: holds the ledger';
    assert.ok((await plane.events('db')).includes(want), (await plane.events('db')).join('\n'));
    await plane.server.api.ok('PATCH', `${VMS}/db`, { body: { metadata: { annotations: { [BY]: 'mallory' } } } });
    assert.equal((await plane.get('VirtualMachine', 'db')).metadata.annotations[BY], 'alice', 'nobody forges it');
    await keeps();
  });

  await t.test('stop, start and restart', async () => {
    assert.equal(await plane.ask('stop', 'db'), '202');
    assert.deepEqual(plane.guests('db'), []);
    await keeps();
    assert.equal(await plane.ask('start', 'db'), '202');
    await plane.advance(10_000);
    const before = plane.startsOf('db').length;
    assert.equal(await plane.ask('restart', 'db'), '202');
    await plane.advance(10_000);
    assert.equal(plane.startsOf('db').length, before + 1);
    assert.equal(plane.guests('db').length, 1);
    await keeps();
  });

  await t.test('its instance may be deleted, and comes again', async () => {
    const before = await plane.get('VirtualMachineInstance', 'db');
    await plane.delete('VirtualMachineInstance', 'db');
    await plane.advance(30_000);
    assert.notEqual((await plane.get('VirtualMachineInstance', 'db')).metadata.uid, before.metadata.uid);
    await keeps();
  });

  await t.test('snapshot, and restore with new disks: the marks go with the disks', async () => {
    await writeDisk(plane, 'db', PRECIOUS);
    await plane.apply(aSnapshot('one', 'db'));
    assert.equal((await plane.get('VirtualMachineSnapshot', 'one')).status.readyToUse, true);
    await writeDisk(plane, 'db', 'wiped');
    await plane.apply(aRestore('back', 'db', 'one', { targetReadinessPolicy: 'StopTarget' }));
    assert.equal((await plane.get('VirtualMachineRestore', 'back')).status.complete, true);
    assert.equal(await diskOf(plane, 'db'), PRECIOUS);
    await keeps();
    const { claim } = await diskPlace(plane, 'default', 'db');
    assert.notEqual(claim, 'db-data');
    const { claims } = placesOf('default');
    assert.equal(await markAt(plane, `${claims}/${claim}`), 'db');
    assert.equal(await markAt(plane, `${claims}/db-data`), undefined, 'what it had before is no disk of it any more');
    await plane.delete('PersistentVolumeClaim', 'db-data');
  });

  await t.test('restore in place: its claim is replaced by another of that name, which is protected, too', async () => {
    await plane.apply(aSnapshot('two', 'db'));
    const { claim, volume } = await diskPlace(plane, 'default', 'db');
    const before = await plane.get('PersistentVolumeClaim', claim);
    await writeDisk(plane, 'db', 'wiped');
    await plane.apply(aRestore('in-place', 'db', 'two', { volumeRestorePolicy: 'InPlace' }));
    const { status } = await plane.get('VirtualMachineRestore', 'in-place');
    assert.equal(status.complete, true, JSON.stringify(status));
    const after = await plane.get('PersistentVolumeClaim', claim);
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    assert.equal(await diskOf(plane, 'db'), PRECIOUS);
    await keeps();
    const answer = await plane.call('DELETE', `${placesOf('default').claims}/${claim}`);
    assert.match(told(answer), /^403 .*it is a disk of the protected VirtualMachine db;/);
    assert.equal(await plane.find('PersistentVolume', volume), undefined, 'nothing keeps the disk that it had');
  });

  await t.test('and ends as any other, once somebody says so', async () => {
    const bob = { ...alice, name: 'bob' };
    await plane.server.api.ok('PATCH', `${VMS}/db`, { body: labelled('false'), user: bob });
    await plane.settle();
    const { metadata, status } = await plane.get('VirtualMachine', 'db');
    assert.equal(status.deleteProtected, undefined);
    assert.equal(metadata.annotations[BY], 'bob');
    assert.equal(metadata.annotations[REASON], undefined);
    assert.match(
      (await plane.events('db')).at(-1)!,
      /^DeleteProtectionDisabled No longer protected from deletion, by bob$/,
    );
    await plane.delete('VirtualMachine', 'db');
    assert.equal(await plane.find('VirtualMachine', 'db'), undefined);
  });
});

test('what protected VMs would be lost with stays, too', async (t) => {
  const plane = await startVmPlane(t);
  await makeNamespace(plane, 'shop');
  await makeProtected(plane, 'shop', 'db');
  const { vms, claims, namespace } = placesOf('shop');
  const { api } = plane.server;
  const volume = `/api/v1/persistentvolumes/${(await diskPlace(plane, 'shop', 'db')).volume}`;
  const marks = async () => ({
    namespace: await markAt(plane, namespace),
    claim: await markAt(plane, `${claims}/db`),
    volume: await markAt(plane, volume),
    definition: await markAt(plane, CRD),
  });

  await t.test('marks come and go with the label', async () => {
    const marked = { namespace: 'db', claim: 'db', volume: 'shop/db', definition: 'shop/db' };
    const none = { namespace: undefined, claim: undefined, volume: undefined, definition: undefined };
    assert.deepEqual(await marks(), marked);
    await api.ok('PATCH', `${vms}/db`, { body: labelled(null) });
    await plane.settle();
    assert.deepEqual(await marks(), none);
    await api.ok('PATCH', `${vms}/db`, { body: labelled('True') });
    await plane.settle();
    assert.deepEqual(await marks(), marked);
  });

  await t.test('many are named by the first of them', async () => {
    for (const name of ['a', 'b', 'c']) await makeProtected(plane, 'shop', name);
    assert.equal(await markAt(plane, namespace), 'a, b, c and others');
    for (const name of ['a', 'b', 'c']) await api.ok('PATCH', `${vms}/${name}`, { body: labelled(null) });
    await plane.settle();
    assert.equal(await markAt(plane, namespace), 'db');
  });

  await t.test('its namespace is not deleted, and nothing in it is', async () => {
    await api.ok('POST', placesOf('shop').configMaps, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'orders' } },
    });
    const [before, world] = [plane.server.store.revision, await worldOf(plane, 'shop', 'db')];
    const answer = await plane.call('DELETE', namespace);
    const want = `Namespace "shop" cannot be deleted: it holds the protected VirtualMachine db; remove the label ${LABEL} from them first`;
    assert.ok(told(answer).endsWith(want), told(answer));
    await plane.settle();
    assert.equal(plane.server.store.revision, before, 'nothing was written');
    assert.deepEqual(await worldOf(plane, 'shop', 'db'), world);
    assert.equal((await api.ok('GET', namespace)).status.phase, 'Active');
  });

  await t.test('all at once: the unprotected go, the protected stay and are named', async () => {
    // More than are deleted at a time.
    for (let n = 0; n < 70; n++) await api.ok('POST', vms, { body: withLabels(`e-${n}`, {}) });
    const answer = await plane.call('DELETE', vms);
    isRefused(told(answer), 'db');
    await plane.settle();
    const left = (await api.ok('GET', vms)).items.map(({ metadata }: Loose) => metadata.name);
    assert.deepEqual(left, ['db']);
    assert.equal((await worldOf(plane, 'shop', 'db')).disk, PRECIOUS);
  });

  await t.test('one by one, as kubectl delete --all does it', async () => {
    for (const name of ['a', 'z']) await api.ok('POST', vms, { body: withLabels(name, {}) });
    await plane.settle();
    const answers: string[] = [];
    for (const { metadata } of (await api.ok('GET', vms)).items) {
      const { status } = await plane.call('DELETE', `${vms}/${metadata.name}`);
      answers.push(`${metadata.name} ${status}`);
    }
    assert.deepEqual(answers, ['a 200', 'db 422', 'z 200']);
    await plane.settle();
  });

  await t.test('without the label all of it can go', async () => {
    await api.ok('PATCH', `${vms}/db`, { body: labelled(null) });
    await plane.settle();
    await api.ok('DELETE', namespace);
    await plane.advance(60_000);
    assert.equal((await plane.call('GET', namespace)).status, 404);
    assert.equal((await plane.call('GET', volume)).status, 404);
    assert.equal(await markAt(plane, CRD), undefined);
  });
});

test('the moment between label and mark', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await makeNamespace(plane, 'shop');
  await makeProtected(plane, 'shop', 'db', { metadata: { labels: {} } });
  const { vms, claims, namespace } = placesOf('shop');
  const volume = `/api/v1/persistentvolumes/${(await diskPlace(plane, 'shop', 'db')).volume}`;
  const needed = { namespace, claim: `${claims}/db`, volume, definition: CRD };

  /** The server takes the label and is lost with the next write. */
  const labelledOnly = async () => {
    const cut = plane.cutAfter(1);
    await plane.server.api.ok('PATCH', `${vms}/db`, { body: labelled('true') });
    await cut;
  };

  await t.test('is closed by a look at the labels', async () => {
    await labelledOnly();
    for (const [what, url] of Object.entries(needed)) {
      assert.equal(await markAt(plane, url), undefined, 'nobody could write it');
      assert.match(told(await plane.call('DELETE', url)), /^403 .*protected VirtualMachine (shop\/)?db;/, what);
    }
  });

  await t.test('a server that is lost there refuses when it is back, and marks', async () => {
    await plane.restartServer();
    for (const [what, url] of Object.entries(needed)) {
      assert.match(await markAt(plane, url).then(String), /^(shop\/)?db$/, what);
      assert.match(told(await plane.call('DELETE', url)), /^403 .*protected VirtualMachine (shop\/)?db;/, what);
    }
    isRefused(told(await plane.call('DELETE', `${vms}/db`)), 'db');
    assert.equal((await worldOf(plane, 'shop', 'db')).disk, PRECIOUS);
  });

  await t.test('and one that is lost before it has taken all marks away lets all of it go in the end', async () => {
    const cut = plane.cutAfter(2);
    await plane.server.api.ok('PATCH', `${vms}/db`, { body: labelled(null) });
    await cut;
    await plane.restartServer();
    for (const [what, url] of Object.entries(needed)) assert.equal(await markAt(plane, url), undefined, what);
    await plane.server.api.ok('DELETE', namespace);
    await plane.advance(60_000);
    assert.equal((await plane.call('GET', namespace)).status, 404);
  });
});

test('when none of our own parts is alive', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await makeNamespace(plane, 'shop');
  await makeNamespace(plane, 'empty');
  await makeProtected(plane, 'shop', 'db');
  const { vms, claims, namespace } = placesOf('shop');
  const { api, parts } = plane.server;
  const volume = `/api/v1/persistentvolumes/${(await diskPlace(plane, 'shop', 'db')).volume}`;
  await api.ok('POST', claims, { body: aClaim('spare') });
  await plane.settle();
  await parts.stop();

  await t.test('the API server itself refuses, by policies and marks', async () => {
    isRefused(told(await plane.call('DELETE', `${vms}/db`)), 'db');
    for (const url of [namespace, `${claims}/db`, volume, CRD]) {
      assert.match(told(await plane.call('DELETE', url)), /^403 .*protected VirtualMachine (shop\/)?db;/);
    }
  });

  await t.test('and what no protected VM needs can be deleted', async () => {
    for (const url of [`${claims}/spare`, '/api/v1/namespaces/empty']) {
      assert.equal(told(await plane.call('DELETE', url)), '200');
    }
  });
});
