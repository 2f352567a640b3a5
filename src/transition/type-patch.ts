/** Builds the patches of the Job. Each tests the uid of the VM and the values that it replaces. Pure. */
import { actingForPatch } from '#api/identity/identity-edits.ts';
import type { RestartMark } from '#api/machine-types/restart-mark.ts';
import type { PlanEntry } from '#api/machine-types/plan.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { JsonPatchOperation } from '#api/verbs/verb.ts';

const MACHINE = '/spec/template/spec/domain/machine';

/**
 * Returns the patch that clears the type or sets that of the entry. It fails if the type has changed since the VM was
 * read. The history of the VM's identity names the Job.
 */
export function buildTypePatch(entry: PlanEntry, vm: Stored<VirtualMachine>, job: string): JsonPatchOperation[] {
  return [...typeOperations(entry, vm), ...actingForPatch(vm, { cause: `transition by Job ${job}` })];
}

function typeOperations({ act, to }: PlanEntry, vm: Stored<VirtualMachine>): JsonPatchOperation[] {
  const machine = vm.spec.template?.spec?.domain?.machine;
  const sameVm: JsonPatchOperation = { op: 'test', path: '/metadata/uid', value: vm.metadata.uid };
  const set = act === 'set' && to !== undefined;
  if (!machine) {
    const seen: JsonPatchOperation = { op: 'test', path: MACHINE, value: null };
    return [sameVm, seen, ...(set ? [{ op: 'add', path: MACHINE, value: { type: to } } as const] : [])];
  }
  const path = `${MACHINE}/type`;
  const change: JsonPatchOperation = set ? { op: 'add', path, value: to } : { op: 'remove', path };
  return [sameVm, { op: 'test', path, value: machine.type ?? null }, change];
}

/** Returns the patch of the VM's status that sets the mark. */
export function buildMarkPatch(vm: Stored<VirtualMachine>, mark: RestartMark): JsonPatchOperation[] {
  const { status } = vm;
  const sameVm: JsonPatchOperation = { op: 'test', path: '/metadata/uid', value: vm.metadata.uid };
  if (status === undefined) return [sameVm, { op: 'add', path: '/status', value: mark }];
  const { machineTypeRestartRequired: required, machineTypeRestartInstanceUID: uid } = mark;
  const path = '/status/machineTypeRestartInstanceUID';
  const before = status.machineTypeRestartInstanceUID;
  return [
    sameVm,
    { op: 'add', path: '/status/machineTypeRestartRequired', value: required ?? false },
    ...(uid === undefined ? [] : [{ op: 'add', path, value: uid } as const]),
    // Removes the uid of the earlier instance; fails if another instance was marked meanwhile.
    ...(uid === undefined && before !== undefined
      ? [{ op: 'test', path, value: before } as const, { op: 'remove', path } as const]
      : []),
  ];
}
