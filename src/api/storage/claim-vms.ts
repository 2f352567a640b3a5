/**
 * The VMs to which a claim belongs, by what users cannot change through the claim: the templates and statuses of VMs. All
 * decisions that write to a claim, delete it or take it as persistent state use the functions of this file. Pure.
 */
import { isProtected } from '#api/protection/delete-protection.ts';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Stored } from '#kube/meta.ts';

type Vm = Stored<VirtualMachine>;

/** The VM on whose behalf a decision is made. Its own state is not in use by another VM. */
interface Asker {
  readonly uid?: string | undefined;
}

/** Returns a VM that has the claim as a disk, attached or detached, or another VM that has it as its persistent state. */
export function findClaimVm(vms: Iterable<Vm>, claimName: string, { uid }: Asker): Vm | undefined {
  const all = [...vms];
  return (
    all.find((vm) => hasDisk(vm, claimName)) ?? all.find((vm) => vm.metadata.uid !== uid && hasState(vm, claimName))
  );
}

/**
 * Returns the VM because of which the claim cannot become the persistent state of the asking VM. The state of a VM that is
 * not protected does not count: users may give its claim to another VM by changing the marks.
 */
export function findStateBlocker(vms: Iterable<Vm>, claimName: string, asker: Asker): Vm | undefined {
  return findClaimVm(
    [...vms].filter((vm) => isProtected(vm) || hasDisk(vm, claimName)),
    claimName,
    asker,
  );
}

function hasDisk({ spec, status }: Vm, claimName: string): boolean {
  const isDetached = status?.protectedClaims?.some(({ name }) => name === claimName) === true;
  return isDetached || claimNamesOf(spec.template.spec ?? {}).includes(claimName);
}

function hasState({ status }: Vm, claimName: string): boolean {
  return status?.stateClaim?.name === claimName;
}
