/** The patches that the Job makes. Each names the VM by its uid, and what it looked like. Pure. */
import type { JsonPatchOperation } from '#api/can.ts';
import { actingForPatch } from '#api/identity-edits.ts';
import type { PlanEntry } from '#api/machine-types/plan.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';

const MACHINE = '/spec/template/spec/domain/machine';
const MARK = '/status/machineTypeRestartRequired';

/**
 * Clears the type, or sets the entry's; fails where the VM has another type than it is seen with here. The history of the
 * VM's identity names the Job.
 */
export function typePatch(entry: PlanEntry, vm: Stored<VirtualMachine>, job: string): JsonPatchOperation[] {
  return [...typeOperations(entry, vm), ...actingForPatch(vm, { cause: `transition by Job ${job}` })];
}

function typeOperations({ act, to }: PlanEntry, vm: Stored<VirtualMachine>): JsonPatchOperation[] {
  const machine = vm.spec.template?.spec?.domain?.machine;
  const same: JsonPatchOperation = { op: 'test', path: '/metadata/uid', value: vm.metadata.uid };
  const set = act === 'set' && to !== undefined;
  if (!machine) {
    const seen: JsonPatchOperation = { op: 'test', path: MACHINE, value: null };
    return [same, seen, ...(set ? [{ op: 'add', path: MACHINE, value: { type: to } } as const] : [])];
  }
  const path = `${MACHINE}/type`;
  const change: JsonPatchOperation = set ? { op: 'add', path, value: to } : { op: 'remove', path };
  return [same, { op: 'test', path, value: machine.type ?? null }, change];
}

/** Of the status. */
export function markPatch(vm: Stored<VirtualMachine>, required: boolean): JsonPatchOperation[] {
  const { status } = vm;
  return [
    { op: 'test', path: '/metadata/uid', value: vm.metadata.uid },
    status === undefined
      ? { op: 'add', path: '/status', value: { machineTypeRestartRequired: required } }
      : { op: 'add', path: MARK, value: required },
  ];
}
