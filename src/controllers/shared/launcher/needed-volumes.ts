/**
 * Selects the volumes of an instance that its start needs and that its launcher pod names. Volumes that are attached
 * but not plugged are neither needed nor named; optional volumes are named only if they exist. Pure.
 */
import { claimNameOf, claimNamesOf } from '#api/storage/claim-names.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';

/** Returns the names of the claims that a start needs, each once, in the order of the volumes. */
export function neededClaimNames(spec: VmiSpec): string[] {
  const diskOf = disksOf(spec);
  return claimNamesOf({ volumes: (spec.volumes ?? []).filter(({ name }) => isNeeded(diskOf(name))) });
}

/** Returns the volumes whose claims the launcher pod names. */
export function podVolumes(spec: VmiSpec, claims: ReadonlyMap<string, ClaimView>): VmiVolume[] {
  const diskOf = disksOf(spec);
  return (spec.volumes ?? []).filter((volume) => {
    const claimName = claimNameOf(volume);
    const disk = diskOf(volume.name);
    if (claimName === undefined || !isPlugged(disk)) return false;
    return isNeeded(disk) || isUsable(claims.get(claimName));
  });
}

/** Returns the plugged volumes that can be hotplugged. */
export function hotpluggableVolumes(spec: VmiSpec): VmiVolume[] {
  const volumes = (spec.volumes ?? []).filter((volume) => volume.persistentVolumeClaim?.hotpluggable === true);
  if (volumes.length === 0) return volumes;
  const diskOf = disksOf(spec);
  return volumes.filter(({ name }) => isPlugged(diskOf(name)));
}

function disksOf({ domain }: VmiSpec): (name: string) => Disk | undefined {
  const disks = new Map((domain.devices?.disks ?? []).map((disk) => [disk.name, disk]));
  return (name) => disks.get(name);
}

function isNeeded(disk: Disk | undefined): boolean {
  return isPlugged(disk) && disk?.optional !== true;
}

function isPlugged(disk: Disk | undefined): boolean {
  return disk?.plugged !== false;
}

function isUsable(view: ClaimView | undefined): boolean {
  return (
    view !== undefined && view.claim.metadata.deletionTimestamp === undefined && view.claim.status?.phase !== 'Lost'
  );
}
