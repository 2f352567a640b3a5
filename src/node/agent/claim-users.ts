/**
 * Who uses a claim on this node: pods and instances by an index, guests that live, and the disks that stand on it. A pod
 * does not tell of disks that came while its guest ran; the instance does.
 */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import type { PersistentVolume, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { INSTANCES_BY_UID } from '#node/domains/observe-domain.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';

const BY_CLAIM = 'claim';

export interface ClaimName {
  readonly namespace: string | undefined;
  readonly name: string;
}

/** Gives both informers the index that is used here. May be called again. */
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

/** Pods that have not ended. */
export function usersOf({ namespace, name }: ClaimName, pods: Informer<Pod>): Stored<Pod>[] {
  return pods.byIndex(BY_CLAIM, `${namespace}/${name}`).filter((pod) => !hasEnded(pod));
}

/** Instances that name the claim, and whose guest lives. */
export function guestsOf(
  { namespace, name }: ClaimName,
  { vmis, hypervisor }: { vmis: Informer<VirtualMachineInstance>; hypervisor: Hypervisor },
): Stored<VirtualMachineInstance>[] {
  return vmis.byIndex(BY_CLAIM, `${namespace}/${name}`).filter(({ metadata }) => isAlive(hypervisor, metadata.uid));
}

export function isAlive(hypervisor: Hypervisor, id: string): boolean {
  const domain = hypervisor.get(id);
  return domain !== undefined && domain.current.state !== 'ended';
}

/** Ids of the disks that stand on the claim. Labels of pods are anybody's to write: only within the claim's namespace. */
export function disksOf(id: string, claim: ClaimName, vmis: Informer<VirtualMachineInstance>): string[] {
  const [vmi] = vmis.byIndex(INSTANCES_BY_UID, id);
  if (vmi?.metadata.namespace !== claim.namespace) return [];
  const names = (vmi?.spec.volumes ?? []).filter((volume) => volume.persistentVolumeClaim?.claimName === claim.name);
  const disks = new Set(vmi?.spec.domain.devices?.disks?.map(({ name }) => name));
  return names.flatMap(({ name }) => (disks.has(name) ? [`disk-${name}`] : []));
}
