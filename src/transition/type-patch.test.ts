import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import { ACTING_FOR_ANNOTATION } from '#api/identity/identity-edits.ts';
import type { PlanEntry } from '#api/machine-types/plan.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { Stored } from '#kube/meta.ts';
import { buildMarkPatch, buildTypePatch } from '#transition/type-patch.ts';

const OLD = 'pc-q35-6.2';
const metadata = { name: 'db', namespace: 'ns', uid: 'vm', resourceVersion: '1', creationTimestamp: '' };
const entry: PlanEntry = { namespace: 'ns', name: 'db', uid: 'vm', act: 'clear', from: OLD };
const toNew: PlanEntry = { ...entry, act: 'set', to: 'pc-q35-7.2' };

function aVm(machine?: { type?: string | null }, status?: VmStatus): Stored<VirtualMachine> {
  const domain = { memory: { guest: '1Gi' }, ...(machine && { machine }) };
  const vm = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata,
    spec: { template: { spec: { domain } } },
  };
  return { ...vm, ...(status && { status }) } as Stored<VirtualMachine>;
}

const cases: Record<
  string,
  { entry: PlanEntry; vm: Stored<VirtualMachine>; want: NonNullable<DomainSpec['machine']> }
> = {
  'a type is cleared': { entry, vm: aVm({ type: OLD }), want: {} },
  'a type is set': { entry: toNew, vm: aVm({ type: OLD }), want: { type: 'pc-q35-7.2' } },
  'a type is set without a machine': { entry: toNew, vm: aVm(), want: { type: 'pc-q35-7.2' } },
  'an empty type is set': { entry: toNew, vm: aVm({ type: '' }), want: { type: 'pc-q35-7.2' } },
  'a null type is set': { entry: toNew, vm: aVm({ type: null }), want: { type: 'pc-q35-7.2' } },
  'a type is set in an empty machine': { entry: toNew, vm: aVm({}), want: { type: 'pc-q35-7.2' } },
};
for (const [name, { entry: planned, vm, want }] of Object.entries(cases)) {
  test(name, () => {
    const patched = applyJsonPatch(vm, buildTypePatch(planned, vm, 'job-1')) as VirtualMachine;
    const annotations = { [ACTING_FOR_ANNOTATION]: '{"cause":"transition by Job job-1"}' };
    assert.deepEqual(patched, { ...aVm(want), metadata: { ...metadata, annotations } });
    assert.throws(
      () => applyJsonPatch(aVm({ type: 'pc-q35-5.0' }), buildTypePatch(planned, vm, 'job-1')),
      'another type',
    );
    const other = { ...vm, metadata: { ...metadata, uid: 'other' } };
    assert.throws(() => applyJsonPatch(other, buildTypePatch(planned, vm, 'job-1')), 'another VM');
  });
}

test('the mark is added to the status, or is the whole status', () => {
  for (const status of [undefined, { ready: true }, { ready: true, machineTypeRestartRequired: false }]) {
    const vm = aVm({}, status);
    const mark = { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'old' };
    const patched = applyJsonPatch(vm, buildMarkPatch(vm, mark)) as VirtualMachine;
    assert.deepEqual(patched.status, { ...status, ...mark });
  }
});

test('the mark is removed with its instance uid, unless another instance was marked', () => {
  const marked = (uid?: string) =>
    aVm({}, { ready: true, machineTypeRestartRequired: true, ...(uid && { machineTypeRestartInstanceUID: uid }) });
  for (const vm of [marked('old'), marked()]) {
    const patched = applyJsonPatch(vm, buildMarkPatch(vm, { machineTypeRestartRequired: false })) as VirtualMachine;
    assert.deepEqual(patched.status, { ready: true, machineTypeRestartRequired: false });
  }
  const patch = buildMarkPatch(marked('old'), { machineTypeRestartRequired: false });
  assert.throws(() => applyJsonPatch(marked('new'), patch));
});
