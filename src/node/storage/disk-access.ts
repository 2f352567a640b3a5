/** Opens the disks of claims for export and import, unless a guest of this node uses the disk or is about to start with it. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { PersistentVolume, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { claimOf, guestsUsing, podsUsing } from '#node/storage/claim-users.ts';
import { instanceUids } from '#node/guests/guest-objects.ts';
import { volumeLookups } from '#node/guests/volume-lookups.ts';
import type { DiskAccess } from '#node/endpoint/endpoint-agent.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';

export interface DiskAccessParts {
  readonly client: Reader;
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  readonly signal: AbortSignal;
}

/** Returns undefined if disks are simulated. Call it when claims are indexed (indexClaims). */
export function createDiskAccess(parts: DiskAccessParts): DiskAccess | undefined {
  const { client, signal } = parts;
  const { contents } = parts.volumes;
  if (contents === undefined) return undefined;
  const useOf = (volume: Stored<PersistentVolume>) => describeUse(volume, parts);
  return {
    open: (namespace, claim) => contents.open(claim, volumeLookups(namespace, client, signal), { useOf }),
    replace: (namespace, claim) => contents.replace(claim, volumeLookups(namespace, client, signal), { useOf }),
  };
}

/** Applies the same conditions as snapshots of disks that no guest has open (take-offline-snapshot.ts). */
function describeUse(
  volume: Stored<PersistentVolume>,
  { pods, vmis, hypervisor }: DiskAccessParts,
): string | undefined {
  const { name, deletionTimestamp } = volume.metadata;
  if (deletionTimestamp !== undefined) return `PersistentVolume "${name}" is being deleted`;
  const claim = claimOf(volume);
  const pod = podsUsing(claim, pods).find((user) => instanceUids(user).length > 0);
  if (pod !== undefined) return `PersistentVolume "${name}" is in use by pod "${pod.metadata.name}"`;
  const [vmi] = guestsUsing(claim, { vmis, hypervisor });
  if (vmi === undefined) return undefined;
  return `PersistentVolume "${name}" is in use by VirtualMachineInstance "${vmi.metadata.name}"`;
}
