/**
 * Decides the verb migrate, which moves the instance of a VM to another node. Part of the table in decide-verb.ts.
 * Pure.
 */
import type { VerbDecision, VerbWorld, Refusal, RefusedDecision, VerbTarget } from '#api/verbs/decide-verb.ts';
import { controllerUid } from '#kube/meta.ts';

/** Admission decides whether the instance is migratable and whether another migration is running. */
export function decideMigrateVerb(world: VerbWorld): VerbDecision {
  const { name, vm, vmi, options } = world;
  if (vm === undefined) return refuse(world, 'virtualmachine', 404, 'not found');
  // An instance that only shares the VM's name: permission to migrate the VM does not cover it.
  if (vmi === undefined || controllerUid(vmi) !== vm.metadata.uid) {
    return refuse(world, 'virtualmachineinstance', 404, 'not found');
  }
  if (vmi.status?.phase !== 'Running') return refuse(world, 'virtualmachine', 409, 'VM is not running');
  const { addedNodeSelector } = options ?? {};
  const spec = { vmiName: name, ...(addedNodeSelector === undefined ? {} : { addedNodeSelector }) };
  return { code: 202, allowed: [{ do: 'createMigration', generateName: 'kubevirt-migrate-vm-', spec }] };
}

function refuse({ name }: VerbWorld, on: VerbTarget, code: Refusal['code'], message: string): RefusedDecision {
  return { denied: { code, message, on, name } };
}
