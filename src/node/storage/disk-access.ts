/** Opens the disks of claims for export and import, unless a guest of this node uses the disk or is about to start with it. */
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { StorageParts } from '#node/storage/storage-parts.ts';
import { claimOf, guestsUsing, podsUsing } from '#node/storage/claim-users.ts';
import { instanceUids } from '#node/guests/guest-objects.ts';
import { volumeLookups } from '#node/guests/volume-lookups.ts';
import type { DiskAccess } from '#node/endpoint/endpoint-agent.ts';

type DiskAccessParts = Pick<StorageParts, 'client' | 'pods' | 'vmis' | 'hypervisor' | 'volumes' | 'signal'>;

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
