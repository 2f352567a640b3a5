/**
 * Volumes that came after the launcher pod, which does not change any more: it does not name their claims, and so does
 * not keep these from being deleted. Pure.
 */
import { claimNameOf } from '#api/claim-names.ts';
import type { Volume } from '#api/domain/volume.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isFinal } from '#controllers/vmi/phase.ts';
import { hotpluggableVolumes } from '#controllers/vmi/needed-volumes.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';

type View = Pick<VmiWorld, 'vmi' | 'pod'>;

/** For a volume that may come while the guest runs. Without a pod it is as it was told before. */
export function isLate({ vmi, pod }: View, volume: Volume): boolean {
  if (pod === undefined) {
    return vmi.status?.volumeStatus?.find(({ name }) => name === volume.name)?.hotplugVolume !== undefined;
  }
  const claimName = claimNameOf(volume);
  const named = pod.spec.volumes?.find(({ name }) => name === volume.name);
  return named?.persistentVolumeClaim?.claimName !== claimName;
}

/** Whether the guest has, or is about to get, or has not let go of a disk on that claim that its pod does not tell of. */
export function usesLate(view: View, claimName: string): boolean {
  const { vmi } = view;
  // What has ended has no guest any more.
  if (isFinal(vmi.status?.phase)) return false;
  const named = hotpluggableVolumes(vmi.spec).filter((volume) => claimNameOf(volume) === claimName);
  return named.some((volume) => isLate(view, volume)) || goingClaims(vmi).includes(claimName);
}

/** Claims of hotpluggable volumes: of those in the spec, and of those that the guest has not let go of. */
export function movableClaims(vmi: VirtualMachineInstance): string[] {
  const names = hotpluggableVolumes(vmi.spec).flatMap((volume) => claimNameOf(volume) ?? []);
  return [...new Set([...names, ...goingClaims(vmi)])];
}

/** As the status told them while the spec had them. */
function goingClaims({ spec, status }: VirtualMachineInstance): string[] {
  const told = (status?.volumeStatus ?? []).filter(({ hotplugVolume }) => hotplugVolume !== undefined);
  if (told.length === 0) return [];
  const claimOf = new Map((spec.volumes ?? []).map((volume) => [volume.name, claimNameOf(volume)]));
  return told.flatMap(({ name, persistentVolumeClaimInfo: info }) => {
    const claimName = info?.claimName;
    return claimName === undefined || claimOf.get(name) === claimName ? [] : [claimName];
  });
}
