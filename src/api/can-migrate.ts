/** migrate: the wish that the instance of a VM goes to another node. Part of the table in can.ts. Pure. */
import type { Answer, CanWorld, Denial, Denied, Target } from '#api/can.ts';
import { controllerUid } from '#kube/meta.ts';

/** Whether the instance can go at all, and whether it is on its way already, is for admission to say. */
export function migrate(world: CanWorld): Answer {
  const { name, vm, vmi, options } = world;
  if (vm === undefined) return denied(world, 'virtualmachine', 404, 'not found');
  // One that only has the VM's name: whoever may migrate the VM may not migrate that.
  if (vmi === undefined || controllerUid(vmi) !== vm.metadata.uid) {
    return denied(world, 'virtualmachineinstance', 404, 'not found');
  }
  if (vmi.status?.phase !== 'Running') return denied(world, 'virtualmachine', 409, 'VM is not running');
  const { addedNodeSelector } = options ?? {};
  const spec = { vmiName: name, ...(addedNodeSelector === undefined ? {} : { addedNodeSelector }) };
  return { code: 202, allowed: [{ do: 'createMigration', generateName: 'kubevirt-migrate-vm-', spec }] };
}

function denied({ name }: CanWorld, on: Target, code: Denial['code'], message: string): Denied {
  return { denied: { code, message, on, name } };
}
