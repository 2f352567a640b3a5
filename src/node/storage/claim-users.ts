/**
 * Finds the users of a claim on this node: pods, running guests, and their disks. Instances are searched besides pods,
 * because a pod does not name hotplugged disks.
 */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import type { PersistentVolume, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { INSTANCES_BY_UID } from '#node/guests/guest-objects.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';

const BY_CLAIM = 'claim';

interface ClaimName {
  readonly namespace: string | undefined;
  readonly name: string;
}

/** Adds the index by claim to both informers. May be repeated. */
export function indexClaims(pods: Informer<Pod>, vmis: Informer<VirtualMachineInstance>): void {
  vmis.addIndex(BY_CLAIM, claimKeysIn);
  pods.addIndex(BY_CLAIM, claimKeysIn);
}

/** Returns the keys of the claims that a pod or an instance names. */
export function claimKeysIn({ metadata, spec }: Stored<Pod | VirtualMachineInstance>): string[] {
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim === undefined ? [] : [`${metadata.namespace}/${persistentVolumeClaim.claimName}`],
  );
}

export function claimOf({ spec }: PersistentVolume): ClaimName {
  const { namespace, name = '' } = spec.claimRef ?? {};
  return { namespace, name };
}

/** Returns the pods that name the claim and have not ended. */
export function podsUsing({ namespace, name }: ClaimName, pods: Informer<Pod>): Stored<Pod>[] {
  return pods.byIndex(BY_CLAIM, `${namespace}/${name}`).filter((pod) => !hasEnded(pod));
}

/** Returns the instances that name the claim and whose guest has not ended. */
export function guestsUsing(
  { namespace, name }: ClaimName,
  { vmis, hypervisor }: { vmis: Informer<VirtualMachineInstance>; hypervisor: Hypervisor },
): Stored<VirtualMachineInstance>[] {
  return vmis
    .byIndex(BY_CLAIM, `${namespace}/${name}`)
    .filter(({ metadata }) => hasLiveGuest(hypervisor, metadata.uid));
}

export function hasLiveGuest(hypervisor: Hypervisor, id: string): boolean {
  const domain = hypervisor.get(id);
  return domain !== undefined && domain.current.state !== 'ended';
}

/**
 * Returns the ids of a guest's disks on the claim. The instance must be in the namespace of the claim: the id may come from
 * pod labels, which any user can set.
 */
export function disksOnClaim(id: string, claim: ClaimName, vmis: Informer<VirtualMachineInstance>): string[] {
  const [vmi] = vmis.byIndex(INSTANCES_BY_UID, id);
  if (vmi?.metadata.namespace !== claim.namespace) return [];
  const names = (vmi?.spec.volumes ?? []).filter((volume) => volume.persistentVolumeClaim?.claimName === claim.name);
  const disks = new Set(vmi?.spec.domain.devices?.disks?.map(({ name }) => name));
  return names.flatMap(({ name }) => (disks.has(name) ? [`disk-${name}`] : []));
}
