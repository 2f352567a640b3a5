/** The claims that hold the persistent state of VMs, on the whole plane: their class, owner and life. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { KUBEVIRT_NAME, LOCAL_PROVISIONER, SYSTEM_NAMESPACE } from '#api/names.ts';
import { STATE_LABEL, STATE_POD_VOLUME, STATE_VOLUME, stateKeyOf } from '#api/storage/persistent-state.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const RUNNING = 'Running, VMI Running, running, 1';
const CLAIM = 'PersistentVolumeClaim';
const SETTINGS = `/apis/kubevirt.io/v1/namespaces/${SYSTEM_NAMESPACE}/kubevirts/${KUBEVIRT_NAME}`;
const PROFILES = '/apis/cdi.kubevirt.io/v1beta1/storageprofiles';
const CLUSTER_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
const VIRT_DEFAULT = 'storageclass.kubevirt.io/is-default-virt-class';

const domainWith = (persistent: boolean): Loose => ({ domain: { devices: { tpm: { persistent } } } });
const aVmWithState = (name: string, spec: Loose = ALWAYS): Loose => aVm(name, spec, domainWith(true));

async function call(plane: VmPlane, method: string, url: string, body?: Loose): Promise<Loose> {
  const answer = await plane.call(method, url, { body });
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  await plane.settle();
  return answer.body;
}

const configure = (plane: VmPlane, vmStateStorageClass: string | null) =>
  call(plane, 'PATCH', SETTINGS, { spec: { configuration: { vmStateStorageClass } } });

/** Switches the persistence of the VM's TPM for the next start. */
const persist = (plane: VmPlane, name: string, persistent: boolean) =>
  plane.apply({ kind: 'VirtualMachine', metadata: { name }, spec: { template: { spec: domainWith(persistent) } } });

async function statesOf(plane: VmPlane, vm: string): Promise<Loose[]> {
  const claims = await plane.list(CLAIM);
  return claims.filter(({ metadata }) => metadata.labels?.[STATE_LABEL] === stateKeyOf(vm));
}

async function stateOf(plane: VmPlane, vm: string): Promise<Loose> {
  const [claim, ...more] = await statesOf(plane, vm);
  assert.ok(
    claim !== undefined && more.length === 0,
    `${vm} has ${more.length + (claim ? 1 : 0)} claims for its state`,
  );
  return claim;
}

/** Returns class, modes and size of the VM's claim, after checking that its guest uses it. */
async function describeClaim(plane: VmPlane, vm: string): Promise<string> {
  const { spec } = await stateOf(plane, vm);
  assert.equal(plane.guest(vm).definition.state?.directory, `/simulated/${spec.volumeName}/state`);
  const { storageClassName, accessModes, volumeMode, resources } = spec;
  return [storageClassName, accessModes.join(), volumeMode, resources.requests.storage].join(' ');
}

async function synchronizedFailure(plane: VmPlane, vm: string): Promise<string | undefined> {
  const { status } = await plane.get('VirtualMachineInstance', vm);
  const synchronized = status.conditions.find(({ type }: Loose) => type === 'Synchronized');
  return synchronized === undefined ? undefined : `${synchronized.reason}: ${synchronized.message}`;
}

async function deleteVm(plane: VmPlane, vm: string): Promise<void> {
  await plane.delete('VirtualMachine', vm);
  assert.deepEqual(await statesOf(plane, vm), [], 'the state is deleted with its VM');
}

test('the class and the modes of the claim', async (t) => {
  const plane = await startVmPlane(t);
  const annotate = (name: string, annotations: Loose) =>
    plane.apply({ kind: 'StorageClass', metadata: { name, annotations } });
  const check = async (sentence: string, vm: string, want: string) =>
    await t.test(sentence, async () => {
      await plane.apply(aVmWithState(vm));
      assert.equal(await plane.summaryOf(vm), RUNNING);
      assert.equal(await describeClaim(plane, vm), want);
      await deleteVm(plane, vm);
    });

  await check('without configuration, the default class is used', 'by-default', 'local ReadWriteOnce Filesystem 10Mi');
  await annotate('shared', { [VIRT_DEFAULT]: 'true' });
  await check('a default class for VMs takes precedence', 'for-vms', 'shared ReadWriteMany Filesystem 10Mi');
  await configure(plane, 'shared-block');
  await check('a configured class takes precedence over both', 'configured', 'shared-block ReadWriteMany Block 10Mi');
  await configure(plane, 'local-block');
  await check('a built-in class of node-local block volumes', 'on-its-node', 'local-block ReadWriteOnce Block 10Mi');

  await plane.apply({
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', provisioner: LOCAL_PROVISIONER },
    metadata: { name: 'pool' },
    parameters: { scope: 'shared' },
  });
  await configure(plane, 'pool');
  await check('a class without a profile', 'unprofiled', 'pool ReadWriteOnce Filesystem 10Mi');
  await call(plane, 'POST', PROFILES, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    metadata: { name: 'pool', annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '1Gi' } },
    spec: {
      claimPropertySets: [
        { accessModes: ['ReadWriteMany', 'ReadWriteOnce'], volumeMode: 'Block' },
        { accessModes: ['ReadWriteMany', 'ReadWriteOnce'], volumeMode: 'Filesystem' },
      ],
    },
  });
  await check('a profile with all modes and a minimum size', 'profiled', 'pool ReadWriteOnce Filesystem 1Gi');

  await t.test('a configured class that does not exist is reported and waited for', async () => {
    await configure(plane, 'late');
    await plane.apply(aVmWithState('waits'));
    const why = 'storageclasses.storage.k8s.io "late" not found: it is set in spec.configuration.vmStateStorageClass';
    assert.match((await synchronizedFailure(plane, 'waits')) ?? '', new RegExp(`^FailedBackendStorageCreate: ${why}`));
    assert.equal(await plane.summaryOf('waits'), 'Starting, VMI Pending, no guest, 0');
    assert.equal(
      (await plane.eventsOf('waits')).filter((event) => event.includes('FailedBackendStorageCreate')).length,
      1,
    );
    const kind = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', provisioner: LOCAL_PROVISIONER };
    await plane.apply({ ...kind, metadata: { name: 'late' }, parameters: { scope: 'shared' } });
    assert.equal(await describeClaim(plane, 'waits'), 'late ReadWriteOnce Filesystem 10Mi');
    assert.equal(await synchronizedFailure(plane, 'waits'), undefined);
  });

  await t.test('a missing default class is reported until there is one or a class is configured', async () => {
    await configure(plane, null);
    await annotate('shared', { [VIRT_DEFAULT]: null });
    await annotate('local', { [CLUSTER_DEFAULT]: 'false' });
    for (const vm of ['one', 'two']) {
      await plane.apply(aVmWithState(vm));
      assert.match(
        (await synchronizedFailure(plane, vm)) ?? '',
        /^FailedBackendStorageCreate: no default storage class found: set /,
      );
      assert.deepEqual(await statesOf(plane, vm), []);
      await (vm === 'one' ? annotate('local', { [CLUSTER_DEFAULT]: 'true' }) : configure(plane, 'shared'));
      assert.equal(await plane.summaryOf(vm), RUNNING);
      await annotate('local', { [CLUSTER_DEFAULT]: 'false' });
    }
  });

  await t.test('the instance waits for a claim that is not bound', async () => {
    await plane.apply({
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', provisioner: 'example.com/nobody' },
      metadata: { name: 'slow' },
    });
    await configure(plane, 'slow');
    await plane.apply(aVmWithState('pending'));
    const { metadata } = await stateOf(plane, 'pending');
    const why = `BackendStorageNotReady: PVC pending: default/${metadata.name} is not bound yet`;
    assert.equal(await synchronizedFailure(plane, 'pending'), why);
    assert.deepEqual(
      (await plane.names('Pod')).filter((name) => name.includes('pending')),
      [],
    );
    await deleteVm(plane, 'pending');
  });
});

test('the life of the claim', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('the pod names the claim, the instance reports it, and restarts keep it', async () => {
    await plane.apply(aVmWithState('db'));
    const { metadata, spec } = await stateOf(plane, 'db');
    const vm = await plane.get('VirtualMachine', 'db');
    const [owner] = metadata.ownerReferences;
    assert.deepEqual([owner.kind, owner.uid, owner.controller], ['VirtualMachine', vm.metadata.uid, true]);
    const [pod] = await plane.list('Pod');
    const named = { name: STATE_POD_VOLUME, persistentVolumeClaim: { claimName: metadata.name } };
    assert.deepEqual(pod.spec.volumes, [named]);
    const { status } = await plane.get('VirtualMachineInstance', 'db');
    const reported = status.volumeStatus.find(({ name }: Loose) => name === STATE_VOLUME);
    assert.equal(reported.persistentVolumeClaimInfo.claimName, metadata.name);

    await plane.runVerb('restart', 'db');
    plane.guest('db').crash('QEMU exited with code 1');
    await plane.settle();
    await plane.runVerb('stop', 'db');
    await plane.runVerb('start', 'db');
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 4');
    assert.deepEqual((await stateOf(plane, 'db')).metadata.uid, metadata.uid);
    const directories = plane.startsOf('db').map(({ machine }: Loose) => machine.state.directory);
    assert.deepEqual(new Set(directories), new Set([`/simulated/${spec.volumeName}/state`]));
    // The data is on one node, and so are all guests.
    assert.equal(new Set(plane.startsOf('db').map(({ node }) => node)).size, 1);
  });

  await t.test('a claim that is deleted while the guest runs is kept until the guest ends', async () => {
    const { metadata } = await stateOf(plane, 'db');
    await plane.delete(CLAIM, metadata.name);
    assert.ok((await stateOf(plane, 'db')).metadata.deletionTimestamp !== undefined);
    await plane.runVerb('stop', 'db');
    await plane.runVerb('start', 'db');
    const next = await stateOf(plane, 'db');
    assert.notEqual(next.metadata.uid, metadata.uid);
    assert.equal(plane.guest('db').definition.state?.directory, `/simulated/${next.spec.volumeName}/state`);
  });

  await t.test('the claim is kept while persistence is switched off, and used again afterwards', async () => {
    const { metadata } = await stateOf(plane, 'db');
    await persist(plane, 'db', false);
    await plane.runVerb('restart', 'db');
    assert.equal(plane.guest('db').definition.state, undefined);
    assert.equal((await stateOf(plane, 'db')).metadata.uid, metadata.uid);
    await persist(plane, 'db', true);
    await plane.runVerb('restart', 'db');
    assert.equal((await stateOf(plane, 'db')).metadata.uid, metadata.uid);
    assert.notEqual(plane.guest('db').definition.state, undefined);
  });

  await t.test('another VM of the same name gets a new claim, even while the old one exists', async () => {
    const { metadata } = await stateOf(plane, 'db');
    const held = { kind: CLAIM, metadata: { name: metadata.name, finalizers: ['example.org/hold'] } };
    await plane.apply(held);
    await plane.delete('VirtualMachine', 'db');
    await plane.apply(aVmWithState('db'));
    const [old, fresh] = (await statesOf(plane, 'db')).toSorted((one) => (one.metadata.uid === metadata.uid ? -1 : 1));
    assert.deepEqual([old.metadata.uid, old.metadata.deletionTimestamp !== undefined], [metadata.uid, true]);
    assert.equal(plane.guest('db').definition.state?.directory, `/simulated/${fresh.spec.volumeName}/state`);
    await plane.apply({ ...held, metadata: { name: metadata.name, finalizers: null } });
    assert.equal((await stateOf(plane, 'db')).metadata.uid, fresh.metadata.uid);
    await deleteVm(plane, 'db');
  });

  await t.test('the claim of an instance without a VM is deleted with the instance', async () => {
    const { metadata, spec } = aVmWithState('alone');
    const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance' };
    await plane.apply({ ...kind, metadata, spec: spec.template.spec });
    const { ownerReferences } = (await stateOf(plane, 'alone')).metadata;
    assert.equal(ownerReferences[0].kind, 'VirtualMachineInstance');
    assert.notEqual(plane.guest('alone').definition.state, undefined);
    await plane.delete('VirtualMachineInstance', 'alone');
    assert.deepEqual(await statesOf(plane, 'alone'), []);
  });

  await t.test('a claim that lost its volume is reported, and not created again', async () => {
    await plane.apply(aVmWithState('lost'));
    await plane.runVerb('stop', 'lost');
    const { metadata, spec } = await stateOf(plane, 'lost');
    await plane.beginDelete('PersistentVolume', spec.volumeName);
    await plane.apply({ kind: 'PersistentVolume', metadata: { name: spec.volumeName, finalizers: null } });
    await plane.runVerb('start', 'lost');
    const why = `backend storage PVC lost: the volume of default/${metadata.name} is gone`;
    assert.equal(await synchronizedFailure(plane, 'lost'), `BackendStorageNotReady: ${why}`);
    assert.equal(plane.guests('lost').length, 0);
    assert.ok((await plane.eventsOf('lost')).includes(`BackendStorageNotReady ${why}`));
    await deleteVm(plane, 'lost');
  });

  await t.test('the claim of a protected VM cannot be deleted', async () => {
    const vm = aVmWithState('ledger');
    await plane.apply({ ...vm, metadata: { ...vm.metadata, labels: { [PROTECTION_LABEL]: 'true' } } });
    const { metadata } = await stateOf(plane, 'ledger');
    const { status, body } = await plane.call(
      'DELETE',
      `/api/v1/namespaces/default/persistentvolumeclaims/${metadata.name}`,
    );
    assert.equal(status, 403, JSON.stringify(body));
    assert.match(body.message, /protected VirtualMachine ledger/);
    assert.equal((await stateOf(plane, 'ledger')).metadata.deletionTimestamp, undefined);
  });

  await t.test('VM names may be long, contain dots, and have the same beginning', async () => {
    const stem = 'a-very.long-name-of-a-virtual-machine.that';
    assert.equal(stem.length, 42);
    const names = [stem, `${stem}-is-the-first-one-xyz`, `${stem}-is-the-other-one-xyz`, 'with.dots.in-it'];
    assert.equal(names[1]?.length, 63);
    for (const name of names) await plane.beginApply(aVmWithState(name));
    await plane.settle();
    const found = await Promise.all(names.map((name) => stateOf(plane, name)));
    for (const [i, name] of names.entries()) {
      assert.equal(await plane.summaryOf(name), RUNNING);
      assert.equal(plane.guest(name).definition.state?.directory, `/simulated/${found[i]!.spec.volumeName}/state`);
    }
    assert.equal(new Set(found.map(({ metadata }) => metadata.uid)).size, names.length);
  });

  await t.test('a snapshot contains the persistent state', async () => {
    const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'with.dots.in-it' };
    const kind = { apiVersion: 'snapshot.kubevirt.io/v1beta1', kind: 'VirtualMachineSnapshot' };
    await plane.apply({ ...kind, metadata: { name: 'snap' }, spec: { source } });
    const { status } = await plane.get('VirtualMachineSnapshot', 'snap');
    assert.deepEqual([status.phase, status.readyToUse], ['Succeeded', true]);
    assert.deepEqual(status.snapshotVolumes.includedVolumes, ['persistent-state-for-with.dots.in-it']);
    assert.equal((await plane.get('VirtualMachine', 'with.dots.in-it')).status.snapshotInProgress, undefined);
  });
});

test('one claim is made wherever the server is killed during the first start', async (t: TestContext) => {
  const plane = await startVmPlane(t);
  let points = 0;
  for (let isCut = true; isCut;) {
    const vm = `cut-${points}`;
    const cut = plane.cutAfter(points);
    const running = plane.apply(aVmWithState(vm));
    // After the kill it hangs or fails, as expected.
    running.catch(() => {});
    isCut = (await Promise.race([running, cut])) === 'cut';
    if (isCut) {
      await plane.restartServer();
      if ((await plane.find('VirtualMachine', vm)) === undefined) await plane.apply(aVmWithState(vm));
      points++;
    } else void plane.cutAfter(Infinity);
    const { spec } = await stateOf(plane, vm);
    assert.equal(await plane.summaryOf(vm), RUNNING, `killed after write ${points - 1}`);
    assert.equal(plane.guest(vm).definition.state?.directory, `/simulated/${spec.volumeName}/state`);
    await deleteVm(plane, vm);
  }
  assert.ok(points > 10, `the start takes ${points} writes`);
});
