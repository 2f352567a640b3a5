/**
 * The machine type of a VM on the whole plane: empty until the VM starts, then the current default. A transition relies
 * on two rules: the type can always be cleared, whatever the settings say by then, and only the Job writes its mark.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt';
const TYPE = '/spec/template/spec/domain/machine/type';
const HALTED = { runStrategy: 'Halted' };

const aTypedVm = (name: string, spec: Loose, type: string | null) => aVm(name, spec, { domain: { machine: { type } } });
const jsonPatch = (plane: VmPlane, url: string, body: Loose[]) =>
  plane.call('PATCH', url, { body, contentType: 'application/json-patch+json' });

async function configure(plane: VmPlane, configuration: Loose): Promise<void> {
  const { status, body } = await plane.call('PATCH', KUBEVIRT, { body: { spec: { configuration } } });
  assert.equal(status, 200, JSON.stringify(body));
  await plane.settle();
}

/** Returns the machine types in the VM, in its instance, of the guest and in the record. */
async function typesOf(plane: VmPlane, name: string): Promise<Loose[]> {
  const vm = await plane.get('VirtualMachine', name);
  const vmi = await plane.find('VirtualMachineInstance', name);
  const record = await plane.find('VirtualMachineIdentity', name);
  return [
    vm.spec.template.spec.domain.machine?.type,
    vmi?.spec.domain.machine.type,
    vmi?.status.machine?.type,
    record?.status?.machine?.type,
  ];
}

test('the machine type of VMs', async (t) => {
  const plane = await startVmPlane(t);

  const empty: Record<string, [vm: Loose, stored: string | null | undefined]> = {
    absent: [aVm('absent', HALTED), undefined],
    null: [aTypedVm('null', HALTED, null), null],
    empty: [aTypedVm('empty', HALTED, ''), ''],
  };
  for (const [name, [vm, stored]] of Object.entries(empty)) {
    await t.test(`${name}: it stays empty until the start sets it`, async () => {
      await plane.apply(vm);
      assert.equal((await typesOf(plane, name))[0], stored);
      await plane.runVerb('start', name);
      assert.deepEqual(await typesOf(plane, name), ['q35', 'q35', 'pc-q35-rhel9.2.0', 'pc-q35-rhel9.2.0']);
    });
  }

  await t.test('a type that was cleared becomes the default at the time of the start', async () => {
    await plane.apply(aTypedVm('old', { runStrategy: 'Always' }, 'pc-q35-rhel8.2.0'));
    await configure(plane, { machineType: 'pc-q35-rhel9.0.0' });
    const cleared = await jsonPatch(plane, `${VMS}/old`, [
      { op: 'test', path: TYPE, value: 'pc-q35-rhel8.2.0' },
      { op: 'remove', path: TYPE },
    ]);
    assert.equal(cleared.status, 200);
    await plane.settle();
    const waiting = [undefined, 'pc-q35-rhel8.2.0', 'pc-q35-rhel8.2.0', 'pc-q35-rhel8.2.0'];
    assert.deepEqual(await typesOf(plane, 'old'), waiting);
    const { conditions } = (await plane.get('VirtualMachine', 'old')).status;
    assert.ok(
      conditions.some((condition: Loose) => condition.type === 'RestartRequired' && condition.status === 'True'),
    );

    await configure(plane, { machineType: 'pc-q35-rhel9.2.0' });
    assert.deepEqual(await typesOf(plane, 'old'), waiting);
    await plane.runVerb('restart', 'old');
    assert.deepEqual(
      await typesOf(plane, 'old'),
      Array.from({ length: 4 }, () => 'pc-q35-rhel9.2.0'),
    );
    const [before, after] = plane.startsOf('old').map(({ machine: { devices, firmware } }) => ({ devices, firmware }));
    assert.deepEqual(after, before, 'nothing else changes');
  });

  await t.test('a type that is no longer allowed can be cleared, in each of the three ways', async () => {
    const ways: Record<string, Loose> = {
      remove: { op: 'remove', path: TYPE },
      nothing: { op: 'replace', path: TYPE, value: null },
      blank: { op: 'replace', path: TYPE, value: '' },
    };
    for (const name of Object.keys(ways)) await plane.apply(aTypedVm(name, HALTED, 'pc-q35-rhel8.2.0'));
    await configure(plane, { emulatedMachines: ['q35', 'pc-q35-rhel9.*'] });
    for (const [name, way] of Object.entries(ways)) {
      const { status, body } = await jsonPatch(plane, `${VMS}/${name}`, [way]);
      assert.equal(status, 200, JSON.stringify(body));
      await plane.runVerb('start', name);
      assert.equal((await typesOf(plane, name))[2], 'pc-q35-rhel9.2.0');
    }
    const denied = await plane.post(aTypedVm('late', HALTED, 'pc-q35-rhel8.2.0'));
    assert.match(
      denied.body.message,
      /is not supported: pc-q35-rhel8\.2\.0 \(allowed values: \[q35 pc-q35-rhel9\.\*\]\)/,
    );
  });
});
