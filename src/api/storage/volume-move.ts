/** Decides how each volume of an instance is migrated: one rule for admission, controllers and nodes. Pure. */
import { claimNameOf } from '#api/storage/claim-names.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { hasGeneratedContent } from '#api/storage/generated-content.ts';
import { isPlugged } from '#api/devices/disk-bus.ts';
import { LOCAL_DRIVER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';

export type VolumeMove =
  /** Both nodes can access it. */
  | { readonly is: 'shared' }
  /**
   * Its data is on the source node and is copied. `overlay`: only the overlay is copied; both nodes can access its
   * base.
   */
  | { readonly is: 'moves'; readonly overlay: boolean }
  /** Small and read-only: its content is sent as it is. */
  | { readonly is: 'content' }
  | { readonly is: 'stays'; readonly why: string };

/** Returns the moves of all plugged volumes, by name. `volumeOf` returns the PersistentVolume of a claim. */
export function decideVolumeMoves(
  spec: VmiSpec,
  volumeOf: (claimName: string) => PersistentVolume | undefined,
): ReadonlyMap<string, VolumeMove> {
  const disks = new Map((spec.domain.devices?.disks ?? []).map((disk) => [disk.name, disk]));
  const moves = new Map<string, VolumeMove>();
  for (const volume of spec.volumes ?? []) {
    const disk = disks.get(volume.name);
    if (disk !== undefined && isPlugged(disk)) moves.set(volume.name, decideMove(volume, disk, volumeOf));
  }
  return moves;
}

function decideMove(
  volume: VmiVolume,
  disk: Disk,
  volumeOf: (claimName: string) => PersistentVolume | undefined,
): VolumeMove {
  // The guest may have written to a disk that is not read-only.
  if (hasGeneratedContent(volume)) {
    return isReadOnly(volume, disk) ? { is: 'content' } : { is: 'moves', overlay: false };
  }
  if (volume.emptyDisk !== undefined) return { is: 'moves', overlay: false };
  if (volume.hostDisk !== undefined) return refuseMove(volume, 'a hostDisk is a file of its node');
  if (volume.directLun !== undefined) return refuseMove(volume, 'a directLun is a device of its node');
  const claimName = claimNameOf(volume);
  const bound = claimName === undefined ? undefined : volumeOf(claimName);
  if (bound === undefined) return refuseMove(volume, `the claim ${claimName ?? ''} has no volume`);
  const isShared = isAccessibleEverywhere(bound, volume, disk);
  if (volume.ephemeral !== undefined) {
    return isShared ? { is: 'moves', overlay: true } : refuseMove(volume, 'the volume below it is on one node only');
  }
  if (isShared) return { is: 'shared' };
  if (!isOnOneNode(bound)) return refuseMove(volume, `its volume ${bound.metadata.name} cannot be used by two nodes`);
  // A read-only disk would have to be copied in advance; the hypervisor does not do that.
  if (isReadOnly(volume, disk)) return refuseMove(volume, 'it is read-only and on one node only');
  return { is: 'moves', overlay: false };
}

function refuseMove({ name }: VmiVolume, why: string): VolumeMove {
  return { is: 'stays', why: `cannot migrate VMI: volume ${name}: ${why}` };
}

/** Reports whether it is one of our volumes with its data on one node. */
export function isOnOneNode({ spec, metadata }: PersistentVolume): boolean {
  return spec.csi?.driver === LOCAL_DRIVER && metadata.annotations?.[VOLUME_NODE_ANNOTATION] !== undefined;
}

function isAccessibleEverywhere(bound: PersistentVolume, volume: VmiVolume, disk: Disk): boolean {
  if (bound.spec.csi?.driver === LOCAL_DRIVER) return !isOnOneNode(bound);
  const { accessModes } = bound.spec;
  const isSharedReadOnly = accessModes.includes('ReadOnlyMany') && isReadOnly(volume, disk);
  return accessModes.includes('ReadWriteMany') || isSharedReadOnly;
}

function isReadOnly(volume: VmiVolume, { disk, cdrom, floppy, lun }: Disk): boolean {
  if (cdrom !== undefined || volume.persistentVolumeClaim?.readOnly === true) return true;
  return disk?.readonly === true || floppy?.readonly === true || lun?.readonly === true;
}
