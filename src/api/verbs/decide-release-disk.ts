/**
 * Decides the verb releasedisk, which ends the protection of a disk that was detached from a protected VM
 * (docs/delete-protection.md). Part of the table in decide-verb.ts. Pure.
 */
import type { RefusedDecision, VerbDecision, VerbWorld } from '#api/verbs/verb.ts';

const LIST_PATH = '/status/protectedClaims';

export function decideReleaseDisk(world: VerbWorld): VerbDecision {
  const { name, vm, options } = world;
  if (vm === undefined) return { denied: { code: 404, message: 'not found', on: 'virtualmachine', name } };
  const claim = options?.releasedClaim ?? '';
  const list = vm.status?.protectedClaims ?? [];
  const entry = list.find((one) => one.name === claim);
  if (entry === undefined) return refuse(world, claim, 'the VM does not protect it');
  if (entry.detached !== true) return refuse(world, claim, 'it is a disk of the VM; remove it from the VM first');
  const patch = [
    { op: 'test' as const, path: LIST_PATH, value: list },
    { op: 'add' as const, path: LIST_PATH, value: list.filter((one) => one !== entry) },
  ];
  return { code: 200, allowed: [{ do: 'patchVmStatus', uid: vm.metadata.uid, patch }] };
}

function refuse({ name }: VerbWorld, claim: string, reason: string): RefusedDecision {
  const message = `cannot release PersistentVolumeClaim "${claim}": ${reason}`;
  return { denied: { code: 409, message, on: 'virtualmachine', name } };
}
