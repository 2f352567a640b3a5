/**
 * The claim with the persistent state that the status of a VM names. Delete protection and later starts rely on it, so
 * once it is known it does not follow labels, annotations or owners of claims, which users can write: it changes only if
 * a migration or restore has replaced the claim, if the guest runs with another one, or if the claim is gone. Pure.
 */
import {
  findStateClaim,
  followReplacements,
  needsState,
  reportedStateClaim,
  stateOwnerOf,
} from '#api/storage/persistent-state.ts';
import { templateSpec } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

type Claim = Stored<PersistentVolumeClaim>;

export function stateClaimStatus(world: VmWorld): Pick<VmStatus, 'stateClaim'> {
  const { vm } = world;
  // The mark of a claim does not give a VM state that it has never asked for.
  if (vm.status?.stateClaim === undefined && !needsState(templateSpec(vm))) return {};
  const claim = currentClaim(world);
  return claim === undefined ? {} : { stateClaim: { name: claim.metadata.name, uid: claim.metadata.uid } };
}

function currentClaim(world: VmWorld): Claim | undefined {
  const { vm, stateClaims = [], diskUserOf } = world;
  const owner = { ...stateOwnerOf(vm), ...(diskUserOf && { diskUserOf }) };
  const used = stateClaims.find(({ metadata }) => metadata.name === reportedClaim(world));
  if (used !== undefined) return followReplacements(used, stateClaims, owner);
  return findStateClaim(stateClaims, owner) ?? keptClaim(world);
}

/** Returns the claim that the guest uses, as its instance reports it. */
function reportedClaim({ vmi }: VmWorld): string | undefined {
  return vmi === undefined || isFinal(vmi) ? undefined : reportedStateClaim(vmi);
}

/** Returns the claim in the status if it exists, even without marks or under deletion, unless it has another owner. */
function keptClaim({ vm, stateClaims = [] }: VmWorld): Claim | undefined {
  const uid = vm.status?.stateClaim?.uid;
  const known = stateClaims.find(({ metadata }) => metadata.uid === uid);
  const owner = known && controllerUid(known);
  return owner === undefined || owner === vm.metadata.uid ? known : undefined;
}
