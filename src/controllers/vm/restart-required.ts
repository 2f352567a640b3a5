/** Whether the running instance is another than the one that a start would make now. Pure. */
import { isFinal } from '#api/can.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { buildVmi, VM_GENERATION_ANNOTATION } from '#controllers/vm/build-vmi.ts';
import { identityOf, knownIdentity } from '#controllers/vm/identity.ts';
import { isDeleting, type VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';

export function restartRequired(world: VmWorld): boolean {
  const { vm, vmi, configuration } = world;
  if (vmi === undefined || isDeleting(vmi) || isFinal(vmi)) return false;
  const next = buildVmi(vm, identityOf(vm, knownIdentity(world)), configuration);
  return !deepEqual(comparable(next.spec), comparable(vmi.spec));
}

/** Not of the machine, but of how it starts and stops; changed on an instance by the subresources. */
function comparable({ terminationGracePeriodSeconds: _grace, startStrategy: _start, ...spec }: VmiSpec): object {
  return spec;
}

/** The generation that the instance shows, or all of it where there is none. */
export function observedGeneration(world: VmWorld): number | undefined {
  const { vm, vmi } = world;
  if (vmi === undefined || !restartRequired(world)) return vm.metadata.generation;
  const made = Number(vmi.metadata.annotations?.[VM_GENERATION_ANNOTATION]);
  return Number.isSafeInteger(made) ? made : undefined;
}
