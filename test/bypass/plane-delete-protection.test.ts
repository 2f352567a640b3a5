/** Delete protection on the whole plane: a protected VM works like any other VM, but cannot be deleted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CRD,
  locateDisk,
  jsonPatch,
  LABEL,
  labelPatch,
  createNamespace,
  createProtectedVm,
  readMark,
  urlsOf,
  PRECIOUS,
  refusalMessage,
  renderResponse,
  protectedStateOf,
} from '#test/support/protection.ts';
import { aRestore, aSnapshot, diskText, writeDisk } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const HALTED = { runStrategy: 'Halted' };
const VMS = urlsOf('default').vms;
const LABEL_PATH = `/metadata/labels/${LABEL.replace('/', '~1')}`;
const REASON = 'selfsame.io/delete-protection-reason';
const BY = 'selfsame.io/delete-protection-by';
const AT = 'selfsame.io/delete-protection-at';

const withLabels = (name: string, labels: Loose): Loose => {
  const vm = aVm(name, HALTED);
  return { ...vm, metadata: { name, labels } };
};
const tryDelete = async (plane: VmPlane, name: string) => renderResponse(await plane.call('DELETE', `${VMS}/${name}`));
const assertRefused = (answer: string, vm: string) => {
  assert.match(answer, /^422 /);
  assert.ok(answer.includes(refusalMessage(vm)), answer);
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
  'an empty label': { labels: { [LABEL]: '' } },
  'other labels only': { labels: { app: 'true' } },
  'an empty map of labels': { labels: {} },
  'no labels': {},
};

test('only the labels true and True protect a VM', async (t) => {
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
      assert.equal(status.deleteProtected, refused, 'absent if the VM is not protected');
      const answer = await tryDelete(plane, name);
      await plane.settle();
      if (refused) assertRefused(answer, name);
      else assert.equal(answer, '200');
      assert.equal((await plane.find('VirtualMachine', name)) !== undefined, refused ?? false);
    });
  }

  const ends: Record<string, Loose> = {
    'the label removed by a JSON patch': jsonPatch({ op: 'remove', path: LABEL_PATH }),
    'the label replaced with false': jsonPatch({ op: 'replace', path: LABEL_PATH, value: 'false' }),
    'the label removed by a merge patch': { body: labelPatch(null) },
  };
  for (const [index, [sentence, patch]] of Object.entries(ends).entries()) {
    await t.test(`${sentence}: the VM can be deleted`, async () => {
      const name = `ends-${index}`;
      await plane.apply(withLabels(name, { [LABEL]: 'true' }));
      assertRefused(await tryDelete(plane, name), name);
      assert.equal((await plane.call('PATCH', `${VMS}/${name}`, patch)).status, 200);
      // No controller has to run in between.
      assert.equal(await tryDelete(plane, name), '200');
      await plane.settle();
      assert.equal(await plane.find('VirtualMachine', name), undefined);
    });
  }

  await t.test(
    'a value that was probably intended to protect draws a Warning when it is set, not at later writes',
    async () => {
      await plane.apply(withLabels('meant', {}));
      const url = `${VMS}/meant`;
      assert.equal((await plane.call('PATCH', url, { body: labelPatch('YES') })).warnings.length, 1);
      const later = await plane.call('PATCH', url, { body: { metadata: { annotations: { a: 'b' } } } });
      assert.deepEqual(later.warnings, []);
    },
  );
});

test('a protected VM works like any other', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('db-data'));
  await plane.apply(aVmOnClaim('db', 'db-data', { runStrategy: 'Always' }));
  const alice = { name: 'alice', groups: ['system:masters', 'system:authenticated'] };
  const { uid } = (await plane.get('VirtualMachine', 'db')).metadata;
  const isStillProtected = async () => {
    assert.equal((await plane.get('VirtualMachine', 'db')).metadata.uid, uid);
    assertRefused(await tryDelete(plane, 'db'), 'db');
  };

  await t.test('annotations and an Event say who protected it, when and why', async () => {
    const annotations = { [REASON]: 'holds the ledger', [BY]: 'somebody else', [AT]: 'never' };
    const body = { metadata: { labels: { [LABEL]: 'true' }, annotations } };
    await plane.server.api.ok('PATCH', `${VMS}/db`, { body, user: alice });
    await plane.settle();
    const { metadata, status } = await plane.get('VirtualMachine', 'db');
    assert.equal(status.deleteProtected, true);
    assert.equal(metadata.annotations[BY], 'alice');
    assert.match(metadata.annotations[AT], /^\d{4}-\d\d-\d\dT/);
    const want = 'DeleteProtectionEnabled Protected from deletion by alice: holds the ledger';
    assert.ok((await plane.eventsOf('db')).includes(want), (await plane.eventsOf('db')).join('\n'));
    await plane.server.api.ok('PATCH', `${VMS}/db`, { body: { metadata: { annotations: { [BY]: 'mallory' } } } });
    assert.equal(
      (await plane.get('VirtualMachine', 'db')).metadata.annotations[BY],
      'alice',
      'the annotation cannot be forged',
    );
    await isStillProtected();
  });

  await t.test('stop, start and restart', async () => {
    assert.equal(await plane.runVerb('stop', 'db'), '202');
    assert.deepEqual(plane.guests('db'), []);
    await isStillProtected();
    assert.equal(await plane.runVerb('start', 'db'), '202');
    await plane.advance(10_000);
    const before = plane.startsOf('db').length;
    assert.equal(await plane.runVerb('restart', 'db'), '202');
    await plane.advance(10_000);
    assert.equal(plane.startsOf('db').length, before + 1);
    assert.equal(plane.guests('db').length, 1);
    await isStillProtected();
  });

  await t.test('its instance can be deleted, and is created again', async () => {
    const before = await plane.get('VirtualMachineInstance', 'db');
    await plane.delete('VirtualMachineInstance', 'db');
    await plane.advance(30_000);
    assert.notEqual((await plane.get('VirtualMachineInstance', 'db')).metadata.uid, before.metadata.uid);
    await isStillProtected();
  });

  await t.test('a restore to new disks moves the marks to the new disks', async () => {
    await writeDisk(plane, 'db', PRECIOUS);
    await plane.apply(aSnapshot('one', 'db'));
    assert.equal((await plane.get('VirtualMachineSnapshot', 'one')).status.readyToUse, true);
    await writeDisk(plane, 'db', 'wiped');
    await plane.apply(aRestore('back', 'db', 'one', { targetReadinessPolicy: 'StopTarget' }));
    assert.equal((await plane.get('VirtualMachineRestore', 'back')).status.complete, true);
    assert.equal(await diskText(plane, 'db'), PRECIOUS);
    await isStillProtected();
    const { claim } = await locateDisk(plane, 'default', 'db');
    assert.notEqual(claim, 'db-data');
    const { claims } = urlsOf('default');
    assert.equal(await readMark(plane, `${claims}/${claim}`), 'db');
    assert.equal(await readMark(plane, `${claims}/db-data`), undefined, 'the old claim is no longer its disk');
    await plane.delete('PersistentVolumeClaim', 'db-data');
  });

  await t.test('a restore in place replaces its claim, and the new claim is protected too', async () => {
    await plane.apply(aSnapshot('two', 'db'));
    const { claim, volume } = await locateDisk(plane, 'default', 'db');
    const before = await plane.get('PersistentVolumeClaim', claim);
    await writeDisk(plane, 'db', 'wiped');
    await plane.apply(aRestore('in-place', 'db', 'two', { volumeRestorePolicy: 'InPlace' }));
    const { status } = await plane.get('VirtualMachineRestore', 'in-place');
    assert.equal(status.complete, true, JSON.stringify(status));
    const after = await plane.get('PersistentVolumeClaim', claim);
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    assert.equal(await diskText(plane, 'db'), PRECIOUS);
    await isStillProtected();
    const answer = await plane.call('DELETE', `${urlsOf('default').claims}/${claim}`);
    assert.match(renderResponse(answer), /^403 .*it is a disk of the protected VirtualMachine db;/);
    assert.equal(await plane.find('PersistentVolume', volume), undefined, 'the old disk is deleted');
  });

  await t.test('it can be deleted when a user has removed the protection', async () => {
    const bob = { ...alice, name: 'bob' };
    await plane.server.api.ok('PATCH', `${VMS}/db`, { body: labelPatch('false'), user: bob });
    await plane.settle();
    const { metadata, status } = await plane.get('VirtualMachine', 'db');
    assert.equal(status.deleteProtected, undefined);
    assert.equal(metadata.annotations[BY], 'bob');
    assert.equal(metadata.annotations[REASON], undefined);
    assert.match(
      (await plane.eventsOf('db')).at(-1)!,
      /^DeleteProtectionDisabled No longer protected from deletion, by bob$/,
    );
    await plane.delete('VirtualMachine', 'db');
    assert.equal(await plane.find('VirtualMachine', 'db'), undefined);
  });
});

test('objects that protected VMs need cannot be deleted', async (t) => {
  const plane = await startVmPlane(t);
  await createNamespace(plane, 'shop');
  await createProtectedVm(plane, 'shop', 'db');
  const { vms, claims, namespace } = urlsOf('shop');
  const { api } = plane.server;
  const volume = `/api/v1/persistentvolumes/${(await locateDisk(plane, 'shop', 'db')).volume}`;
  const marks = async () => ({
    namespace: await readMark(plane, namespace),
    claim: await readMark(plane, `${claims}/db`),
    volume: await readMark(plane, volume),
    definition: await readMark(plane, CRD),
  });

  await t.test('marks are set and removed with the label', async () => {
    const marked = { namespace: 'db', claim: 'db', volume: 'shop/db', definition: 'shop/db' };
    const none = { namespace: undefined, claim: undefined, volume: undefined, definition: undefined };
    assert.deepEqual(await marks(), marked);
    await api.ok('PATCH', `${vms}/db`, { body: labelPatch(null) });
    await plane.settle();
    assert.deepEqual(await marks(), none);
    await api.ok('PATCH', `${vms}/db`, { body: labelPatch('True') });
    await plane.settle();
    assert.deepEqual(await marks(), marked);
  });

  await t.test('a mark with many VMs names only the first', async () => {
    for (const name of ['a', 'b', 'c']) await createProtectedVm(plane, 'shop', name);
    assert.equal(await readMark(plane, namespace), 'a, b, c and others');
    for (const name of ['a', 'b', 'c']) await api.ok('PATCH', `${vms}/${name}`, { body: labelPatch(null) });
    await plane.settle();
    assert.equal(await readMark(plane, namespace), 'db');
  });

  await t.test('its namespace cannot be deleted, and nothing in it is deleted', async () => {
    await api.ok('POST', urlsOf('shop').configMaps, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'orders' } },
    });
    const [before, world] = [plane.server.store.revision, await protectedStateOf(plane, 'shop', 'db')];
    const answer = await plane.call('DELETE', namespace);
    const want = `Namespace "shop" cannot be deleted: it holds the protected VirtualMachine db; remove the label ${LABEL} from them first (virtctl unprotect)`;
    assert.ok(renderResponse(answer).endsWith(want), renderResponse(answer));
    await plane.settle();
    assert.equal(plane.server.store.revision, before, 'nothing was written');
    assert.deepEqual(await protectedStateOf(plane, 'shop', 'db'), world);
    assert.equal((await api.ok('GET', namespace)).status.phase, 'Active');
  });

  await t.test('a delete of the collection deletes unprotected VMs and names the protected one', async () => {
    // More VMs than the server deletes at a time.
    for (let n = 0; n < 70; n++) await api.ok('POST', vms, { body: withLabels(`e-${n}`, {}) });
    const answer = await plane.call('DELETE', vms);
    assertRefused(renderResponse(answer), 'db');
    await plane.settle();
    const left = (await api.ok('GET', vms)).items.map(({ metadata }: Loose) => metadata.name);
    assert.deepEqual(left, ['db']);
    assert.equal((await protectedStateOf(plane, 'shop', 'db')).disk, PRECIOUS);
  });

  await t.test('single deletes, as kubectl delete --all sends them, delete unprotected VMs only', async () => {
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

  await t.test('without the label everything can be deleted', async () => {
    await api.ok('PATCH', `${vms}/db`, { body: labelPatch(null) });
    await plane.settle();
    await api.ok('DELETE', namespace);
    await plane.advance(60_000);
    assert.equal((await plane.call('GET', namespace)).status, 404);
    assert.equal((await plane.call('GET', volume)).status, 404);
    assert.equal(await readMark(plane, CRD), undefined);
  });
});

test('between the label and its marks', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await createNamespace(plane, 'shop');
  await createProtectedVm(plane, 'shop', 'db', { metadata: { labels: {} } });
  const { vms, claims, namespace } = urlsOf('shop');
  const volume = `/api/v1/persistentvolumes/${(await locateDisk(plane, 'shop', 'db')).volume}`;
  const needed = { namespace, claim: `${claims}/db`, volume, definition: CRD };

  /** Sets the label; the server is killed at the next write. */
  const setLabelOnly = async () => {
    const cut = plane.cutAfter(1);
    await plane.server.api.ok('PATCH', `${vms}/db`, { body: labelPatch('true') });
    await cut;
  };

  await t.test('objects without a mark are protected by the label', async () => {
    await setLabelOnly();
    for (const [what, url] of Object.entries(needed)) {
      assert.equal(await readMark(plane, url), undefined, 'the mark was not written');
      assert.match(
        renderResponse(await plane.call('DELETE', url)),
        /^403 .*protected VirtualMachine (shop\/)?db;/,
        what,
      );
    }
  });

  await t.test('a server that was killed there refuses and sets the marks after its restart', async () => {
    await plane.restartServer();
    for (const [what, url] of Object.entries(needed)) {
      assert.match(await readMark(plane, url).then(String), /^(shop\/)?db$/, what);
      assert.match(
        renderResponse(await plane.call('DELETE', url)),
        /^403 .*protected VirtualMachine (shop\/)?db;/,
        what,
      );
    }
    assertRefused(renderResponse(await plane.call('DELETE', `${vms}/db`)), 'db');
    assert.equal((await protectedStateOf(plane, 'shop', 'db')).disk, PRECIOUS);
  });

  await t.test('a server that was killed before it removed all marks removes them after its restart', async () => {
    const cut = plane.cutAfter(2);
    await plane.server.api.ok('PATCH', `${vms}/db`, { body: labelPatch(null) });
    await cut;
    await plane.restartServer();
    for (const [what, url] of Object.entries(needed)) assert.equal(await readMark(plane, url), undefined, what);
    await plane.server.api.ok('DELETE', namespace);
    await plane.advance(60_000);
    assert.equal((await plane.call('GET', namespace)).status, 404);
  });
});

test('while none of our components runs', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await createNamespace(plane, 'shop');
  await createNamespace(plane, 'empty');
  await createProtectedVm(plane, 'shop', 'db');
  const { vms, claims, namespace } = urlsOf('shop');
  const { api, parts } = plane.server;
  const volume = `/api/v1/persistentvolumes/${(await locateDisk(plane, 'shop', 'db')).volume}`;
  await api.ok('POST', claims, { body: aClaim('spare') });
  await plane.settle();
  await parts.stop();

  await t.test('the API server itself refuses, by policies and marks', async () => {
    assertRefused(renderResponse(await plane.call('DELETE', `${vms}/db`)), 'db');
    for (const url of [namespace, `${claims}/db`, volume, CRD]) {
      assert.match(renderResponse(await plane.call('DELETE', url)), /^403 .*protected VirtualMachine (shop\/)?db;/);
    }
  });

  await t.test('objects that no protected VM needs can be deleted', async () => {
    for (const url of [`${claims}/spare`, '/api/v1/namespaces/empty']) {
      assert.equal(renderResponse(await plane.call('DELETE', url)), '200');
    }
  });
});
