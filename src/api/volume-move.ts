/** What becomes of each volume of an instance when its guest goes to another node: one rule for all who ask. Pure. */
import { claimNameOf } from '#api/claim-names.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { Volume } from '#api/domain/volume.ts';
import { isMadeOfFiles } from '#api/made-of-files.ts';
import { isPlugged } from '#api/disk-bus.ts';
import { LOCAL_DRIVER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';

export type VolumeMove =
  /** Both nodes reach it. */
  | { readonly is: 'shared' }
  /** Its data lies on the node and goes along; `overlay`: what is above a base that both reach. */
  | { readonly is: 'moves'; readonly overlay: boolean }
  /** Small, and nobody can write it: it is sent as it is. */
  | { readonly is: 'content' }
  | { readonly is: 'stays'; readonly why: string };

/** By name of the volume; only those that are in the guest. `volumeOf`: the PersistentVolume of a claim, by its name. */
export function volumeMoves(
  spec: VmiSpec,
  volumeOf: (claimName: string) => PersistentVolume | undefined,
): ReadonlyMap<string, VolumeMove> {
  const disks = new Map((spec.domain.devices?.disks ?? []).map((disk) => [disk.name, disk]));
  const moves = new Map<string, VolumeMove>();
  for (const volume of spec.volumes ?? []) {
    const disk = disks.get(volume.name);
    if (disk !== undefined && isPlugged(disk)) moves.set(volume.name, moveOf(volume, disk, volumeOf));
  }
  return moves;
}

function moveOf(volume: Volume, disk: Disk, volumeOf: (claimName: string) => PersistentVolume | undefined): VolumeMove {
  // On a disk that is not only read the guest may have written.
  if (isMadeOfFiles(volume)) {
    return isOnlyRead(volume, disk) ? { is: 'content' } : { is: 'moves', overlay: false };
  }
  if (volume.emptyDisk !== undefined) return { is: 'moves', overlay: false };
  if (volume.hostDisk !== undefined) return stays(volume, 'a hostDisk is a file of its node');
  if (volume.directLun !== undefined) return stays(volume, 'a directLun is a device of its node');
  const claimName = claimNameOf(volume);
  const bound = claimName === undefined ? undefined : volumeOf(claimName);
  if (bound === undefined) return stays(volume, `the claim ${claimName ?? ''} has no volume`);
  const isShared = isReachedEverywhere(bound, volume, disk);
  if (volume.ephemeral !== undefined) {
    return isShared ? { is: 'moves', overlay: true } : stays(volume, 'the volume below it lies on its node');
  }
  if (isShared) return { is: 'shared' };
  if (!liesOnNode(bound)) return stays(volume, `its volume ${bound.metadata.name} cannot be used by two nodes`);
  // What nobody writes could only be copied as a whole before, and no hypervisor does.
  if (isOnlyRead(volume, disk)) return stays(volume, 'it is only read, and lies on its node');
  return { is: 'moves', overlay: false };
}

function stays({ name }: Volume, why: string): VolumeMove {
  return { is: 'stays', why: `cannot migrate VMI: volume ${name}: ${why}` };
}

/** Of ours, on one node. */
export function liesOnNode({ spec, metadata }: PersistentVolume): boolean {
  return spec.csi?.driver === LOCAL_DRIVER && metadata.annotations?.[VOLUME_NODE_ANNOTATION] !== undefined;
}

function isReachedEverywhere(bound: PersistentVolume, volume: Volume, disk: Disk): boolean {
  if (bound.spec.csi?.driver === LOCAL_DRIVER) return !liesOnNode(bound);
  const { accessModes } = bound.spec;
  const manyMayRead = accessModes.includes('ReadOnlyMany') && isOnlyRead(volume, disk);
  return accessModes.includes('ReadWriteMany') || manyMayRead;
}

function isOnlyRead(volume: Volume, { disk, cdrom, floppy, lun }: Disk): boolean {
  if (cdrom !== undefined || volume.persistentVolumeClaim?.readOnly === true) return true;
  return disk?.readonly === true || floppy?.readonly === true || lun?.readonly === true;
}
