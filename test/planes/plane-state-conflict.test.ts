/**
 * Claims that are marked as the state of a VM and belong to another owner, on the whole plane: reported, adopted,
 * released.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyStateClaimName, STATE_LABEL, stateAnnotationOf } from '#api/storage/persistent-state.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const RUNNING = 'Running, VMI Running, running, 1';
const CLAIM = 'PersistentVolumeClaim';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
const PERSISTENT = { domain: { devices: { tpm: { persistent: true } } } };

const aVmWithState = (name: string, spec: Loose = { runStrategy: 'Always' }): Loose => aVm(name, spec, PERSISTENT);

async function ok(plane: VmPlane, method: string, url: string, body?: Loose): Promise<Loose> {
  const answer = await plane.call(method, url, { body });
  assert.ok(answer.status < 300, answer.text);
  return answer.body;
}

/** Creates an unrelated object as an owner. */
async function createOwner(plane: VmPlane, name: string): Promise<Loose> {
  const { metadata } = await ok(plane, 'POST', CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
  });
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: metadata.uid, controller: true };
}

async function createOwnedClaim(plane: VmPlane, name: string, owner: Loose, marks: Loose): Promise<Loose> {
  const claim = aClaim(name, { storageClassName: 'shared', accessModes: ['ReadWriteMany'] });
  return await plane.apply({ ...claim, metadata: { ...claim.metadata, ...marks, ownerReferences: [owner] } });
}

async function failureOf(plane: VmPlane, vm: string): Promise<string | undefined> {
  const { status } = await plane.get('VirtualMachine', vm);
  const failure = status.conditions.find(({ type }: Loose) => type === 'Failure');
  return failure === undefined ? undefined : `${failure.reason}: ${failure.message}`;
}

/** Calls the verb like virtctl; returns the code and the message of a refusal. */
async function decide(plane: VmPlane, verb: string, vm: string, claim: Loose, options: Loose = {}): Promise<string> {
  const url = `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/${vm}/${verb}state`;
  const { user, ...fields } = options;
  const body = { claimName: claim.metadata.name, claimUID: claim.metadata.uid, ...fields };
  const answer = await plane.call('PUT', url, { body, ...(user && { user }) });
  await plane.settle();
  return answer.status < 300 ? String(answer.status) : `${answer.status} ${answer.body.message}`;
}

const stateOfGuest = (plane: VmPlane, vm: string) => plane.guest(vm).definition.state?.directory;
const stateIn = async (plane: VmPlane, claim: string) =>
  `/simulated/${(await plane.get(CLAIM, claim)).spec.volumeName}/state`;

const marks: Record<string, (vm: string) => { name: string; marks: Loose }> = {
  'a label': (vm) => ({ name: `${vm}-state`, marks: { labels: { [STATE_LABEL]: vm } } }),
  'an annotation': (vm) => ({ name: `${vm}-state`, marks: { annotations: { [stateAnnotationOf(vm)]: 'true' } } }),
  'its legacy name': (vm) => ({ name: legacyStateClaimName(vm), marks: {} }),
};

test('a VM does not start while a claim that is marked as its state belongs to another owner', async (t) => {
  const plane = await startVmPlane(t);
  for (const [index, [mark, claimOf]] of Object.entries(marks).entries()) {
    for (const verb of ['adopt', 'release']) {
      await t.test(`${mark} marks it, until a user decides to ${verb}`, async () => {
        const vm = `${verb}s-${index}`;
        const { name, marks: noted } = claimOf(vm);
        const owner = await createOwner(plane, `owner-of-${vm}`);
        const claim = await createOwnedClaim(plane, name, owner, noted);
        await plane.apply(aVmWithState(vm));
        assert.equal(await plane.summaryOf(vm), 'Starting, no VMI, no guest, 0');
        const command = (word: string) => `"virtctl state ${word} ${vm} --claim ${name} -n default"`;
        const expected =
          `Cannot start VirtualMachine "${vm}": PersistentVolumeClaim "${name}" is marked as its persistent state, but ` +
          `belongs to ConfigMap "owner-of-${vm}"; hand it over to this VM with ${command('adopt')}, or remove the mark ` +
          `with ${command('release')}`;
        assert.equal(await failureOf(plane, vm), `PersistentStateConflict: ${expected}`);
        assert.deepEqual(
          (await plane.eventsOf(vm)).filter((event) => event.startsWith('PersistentStateConflict')),
          [`PersistentStateConflict ${expected}`],
        );

        assert.equal(await decide(plane, verb, vm, claim, { dryRun: ['All'] }), '200');
        assert.equal(await plane.summaryOf(vm), 'Starting, no VMI, no guest, 0', 'a dry run changes nothing');
        assert.equal(await decide(plane, verb, vm, claim), '200');
        assert.equal(await plane.summaryOf(vm), RUNNING);
        assert.equal(await failureOf(plane, vm), undefined);
        const { metadata } = await plane.get(CLAIM, name);
        if (verb === 'adopt') {
          assert.equal(stateOfGuest(plane, vm), await stateIn(plane, name));
          const { uid } = (await plane.get('VirtualMachine', vm)).metadata;
          assert.deepEqual(
            metadata.ownerReferences.map((reference: Loose) => [reference.kind, reference.uid, reference.controller]),
            [['VirtualMachine', uid, true]],
          );
          assert.equal(await decide(plane, verb, vm, claim), '200', 'a repeated decision changes nothing');
        } else {
          assert.notEqual(stateOfGuest(plane, vm), await stateIn(plane, name));
          assert.deepEqual(metadata.ownerReferences, [owner]);
          assert.match(await decide(plane, verb, vm, claim), /^409 .*it is not marked as the state of this VM$/);
        }
        await plane.runVerb('restart', vm);
        assert.equal(await plane.summaryOf(vm), 'Running, VMI Running, running, 2', 'the decision is final');
      });
    }
  }

  await t.test('a claim that another VM uses is not handed over', async () => {
    await plane.apply(aVmWithState('web'));
    const state = (await plane.list(CLAIM)).find(({ metadata }) => metadata.labels?.[STATE_LABEL] === 'web');
    // A user wants to move the TPM of web to another VM, and begins with the mark.
    const annotations = { [stateAnnotationOf('thief')]: 'true' };
    const claim = await plane.apply({ kind: CLAIM, metadata: { name: state.metadata.name, annotations } });
    await plane.apply(aVmWithState('thief'));
    assert.match((await failureOf(plane, 'thief')) ?? '', /belongs to VirtualMachine "web"; hand it over/);
    assert.match(await decide(plane, 'adopt', 'thief', claim), /^409 .*holds the persistent state of .*"web"$/);
    await plane.runVerb('restart', 'web');
    assert.equal(await plane.summaryOf('web'), 'Running, VMI Running, running, 2', 'it keeps its own state');
    const marksOfWeb = { labels: { [STATE_LABEL]: null }, annotations: { [stateAnnotationOf('web')]: null } };
    const unmarked = await plane.apply({ kind: CLAIM, metadata: { name: state.metadata.name, ...marksOfWeb } });
    assert.match(await decide(plane, 'adopt', 'thief', unmarked), /^409 .*holds the persistent state of .*"web"$/);

    // web releases it: stopped, its state is the claim that is marked for it, which is none now.
    await plane.runVerb('stop', 'web');
    assert.equal(await decide(plane, 'adopt', 'thief', unmarked), '200');
    assert.equal(await plane.summaryOf('thief'), RUNNING);
    assert.equal(stateOfGuest(plane, 'thief'), `/simulated/${state.spec.volumeName}/state`);
  });

  await t.test('it requires permission to update the VM', async () => {
    const claim = await createOwnedClaim(plane, 'guarded', await createOwner(plane, 'keeper-of-guarded'), {
      labels: { [STATE_LABEL]: 'guarded-vm' },
    });
    await plane.apply(aVmWithState('guarded-vm'));
    const grant = async (name: string, rules: Loose) => {
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name };
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'eve' }];
      const apiVersion = 'rbac.authorization.k8s.io/v1';
      await ok(plane, 'POST', `${RBAC}/roles`, { apiVersion, kind: 'Role', metadata: { name }, rules });
      await ok(plane, 'POST', `${RBAC}/rolebindings`, {
        ...{ apiVersion, kind: 'RoleBinding', metadata: { name }, roleRef, subjects },
      });
    };
    const user = { name: 'eve', groups: ['system:authenticated'] };
    const release = () => decide(plane, 'release', 'guarded-vm', claim, { user });
    assert.match(await release(), /^403 .*User "eve" cannot update resource "virtualmachines\/releasestate"/);
    const resources = ['virtualmachines/releasestate', 'virtualmachines/adoptstate'];
    await grant('verbs', [{ apiGroups: ['subresources.kubevirt.io'], resources, verbs: ['update'] }]);
    assert.match(
      await release(),
      /^403 .*User "eve" cannot update resource "virtualmachines" in API group "kubevirt.io"/,
    );
    await grant('vms', [{ apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: ['update'] }]);
    assert.equal(await release(), '200');
    assert.equal(await plane.summaryOf('guarded-vm'), RUNNING);
  });

  await t.test('an instance without a VM waits, too', async () => {
    await createOwnedClaim(plane, 'lonely', await createOwner(plane, 'keeper-of-lonely'), {
      labels: { [STATE_LABEL]: 'alone' },
    });
    const { metadata, spec } = aVmWithState('alone');
    await plane.apply({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata,
      spec: spec.template.spec,
    });
    const { status } = await plane.get('VirtualMachineInstance', 'alone');
    const { reason, message } = status.conditions.find(({ type }: Loose) => type === 'Synchronized');
    assert.deepEqual([status.phase, reason], ['Pending', 'PersistentStateConflict']);
    assert.match(message, /^Cannot start VirtualMachineInstance "alone": .*"lonely" .* belongs to ConfigMap/);
    await plane.apply({ kind: CLAIM, metadata: { name: 'lonely', ownerReferences: [] } });
    assert.equal(stateOfGuest(plane, 'alone'), await stateIn(plane, 'lonely'));
  });

  await t.test('VMs that are not to start, or have no persistent state, are not affected', async () => {
    const owner = await createOwner(plane, 'owner-of-calm');
    for (const vm of ['calm', 'plain'])
      await createOwnedClaim(plane, `${vm}-x`, owner, { labels: { [STATE_LABEL]: vm } });
    await plane.apply(aVmWithState('calm', { runStrategy: 'Halted' }));
    assert.equal(await failureOf(plane, 'calm'), undefined);
    await plane.apply(aVm('plain', { runStrategy: 'Always' }));
    assert.equal(await plane.summaryOf('plain'), RUNNING);
  });

  await t.test(
    'state that an earlier VM of the name left behind is deleted, and the VM starts with empty state',
    async () => {
      const apiVersion = 'kubevirt.io/v1';
      const earlier = { apiVersion, kind: 'VirtualMachine', name: 'phoenix', uid: 'an-earlier-uid', controller: true };
      const claim = aClaim('ashes', { storageClassName: 'shared', accessModes: ['ReadWriteMany'] });
      const labels = { [STATE_LABEL]: 'phoenix' };
      await plane.beginApply({ ...claim, metadata: { ...claim.metadata, labels, ownerReferences: [earlier] } });
      await plane.apply(aVmWithState('phoenix'));
      assert.equal(await plane.find(CLAIM, 'ashes'), undefined, 'garbage is collected');
      assert.equal(await plane.summaryOf('phoenix'), RUNNING);
      assert.equal(await failureOf(plane, 'phoenix'), undefined);
    },
  );
});
