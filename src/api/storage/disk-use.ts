/**
 * Uses of claims by the disks of an instance, and which uses exclude each other. A disk that one guest writes cannot be
 * open in another guest: the hypervisor locks it. Pure.
 */
import { isPlugged } from '#api/devices/disk-bus.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { claimNameOf } from '#api/storage/claim-names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

/** The reason of an instance that cannot have a claim because another guest has it. */
export const CLAIM_IN_USE = 'ClaimInUse';

export type DiskUse = 'reads' | 'writes';

/** Returns the use of each claim that a plugged disk of the instance has, by the name of the claim. */
export function diskUsesOf({ volumes = [], domain }: Pick<VmiSpec, 'volumes' | 'domain'>): Map<string, DiskUse> {
  const uses = new Map<string, DiskUse>();
  if (!volumes.some((volume) => claimNameOf(volume) !== undefined)) return uses;
  const disks = new Map((domain.devices?.disks ?? []).map((disk) => [disk.name, disk]));
  for (const volume of volumes) {
    const [claimName, disk] = [claimNameOf(volume), disks.get(volume.name)];
    if (claimName === undefined || disk === undefined || !isPlugged(disk)) continue;
    if (uses.get(claimName) !== 'writes') uses.set(claimName, isReadOnly(volume, disk) ? 'reads' : 'writes');
  }
  return uses;
}

/** Reports whether two guests cannot have the claim at the same time. */
export function excludesOther(use: DiskUse, other: DiskUse): boolean {
  return use === 'writes' || other === 'writes';
}

/**
 * Reports whether several guests may write the claim, as in KubeVirt: a block device that several nodes can attach. A
 * claim that can only be read has no writers.
 */
export function isShareable({ spec: { accessModes = [], volumeMode } }: PersistentVolumeClaim): boolean {
  if (volumeMode === 'Block' && accessModes.includes('ReadWriteMany')) return true;
  return accessModes.length > 0 && accessModes.every((mode) => mode === 'ReadOnlyMany');
}

function isReadOnly({ persistentVolumeClaim }: VmiVolume, { disk, cdrom, floppy, lun }: Disk): boolean {
  // An ephemeral volume only reads its claim.
  if (persistentVolumeClaim === undefined || persistentVolumeClaim.readOnly === true || cdrom !== undefined)
    return true;
  return (floppy ?? lun ?? disk)?.readonly === true;
}
