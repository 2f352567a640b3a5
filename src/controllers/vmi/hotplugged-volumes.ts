/**
 * Finds hotplugged volumes: those that were added after the launcher pod was created. The pod does not name their
 * claims, and so does not protect them from deletion. Pure.
 */
import { claimNameOf } from '#api/storage/claim-names.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { hotpluggableVolumes } from '#controllers/shared/launcher/needed-volumes.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';

type View = Pick<VmiWorld, 'vmi' | 'pod'>;

/** Reports whether a hotpluggable volume was added after the pod; without a pod, as the status reported it before. */
export function isHotplugged({ vmi, pod }: View, volume: VmiVolume): boolean {
  if (pod === undefined) {
    return vmi.status?.volumeStatus?.find(({ name }) => name === volume.name)?.hotplugVolume !== undefined;
  }
  const claimName = claimNameOf(volume);
  const named = pod.spec.volumes?.find(({ name }) => name === volume.name);
  return named?.persistentVolumeClaim?.claimName !== claimName;
}

/** Reports whether the guest uses the claim for a hotplugged disk, is about to, or has not released it yet. */
export function usesHotplugged(view: View, claimName: string): boolean {
  const { vmi } = view;
  // After its end an instance has no guest.
  if (isFinalVmiPhase(vmi.status?.phase)) return false;
  const named = hotpluggableVolumes(vmi.spec).filter((volume) => claimNameOf(volume) === claimName);
  return named.some((volume) => isHotplugged(view, volume)) || detachingClaims(vmi).includes(claimName);
}

/** Returns the claims of hotpluggable volumes: those in the spec, and those that the guest has not released. */
export function hotpluggableClaimNames(vmi: VirtualMachineInstance): string[] {
  const names = hotpluggableVolumes(vmi.spec).flatMap((volume) => claimNameOf(volume) ?? []);
  return [...new Set([...names, ...detachingClaims(vmi)])];
}

/** Returns the claims that the status still reports as hotplugged and that the spec no longer has. */
function detachingClaims({ spec, status }: VirtualMachineInstance): string[] {
  const reported = (status?.volumeStatus ?? []).filter(({ hotplugVolume }) => hotplugVolume !== undefined);
  if (reported.length === 0) return [];
  const claimOf = new Map((spec.volumes ?? []).map((volume) => [volume.name, claimNameOf(volume)]));
  return reported.flatMap(({ name, persistentVolumeClaimInfo: info }) => {
    const claimName = info?.claimName;
    return claimName === undefined || claimOf.get(name) === claimName ? [] : [claimName];
  });
}
