/** What an instance's status tells of its volumes. Pure. */
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { claimNameOf } from '#api/claim-names.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';

type VolumeStatus = NonNullable<VmiStatus['volumeStatus']>[number];

/** By name, as KubeVirt sorts them. */
export function volumeStatusOf({ vmi, claims }: Pick<VmiWorld, 'vmi' | 'claims'>): VolumeStatus[] {
  const list = (vmi.spec.volumes ?? []).map((volume): VolumeStatus => {
    const claimName = claimNameOf(volume);
    const view = claimName === undefined ? undefined : claims.get(claimName);
    if (claimName === undefined || view === undefined) return { name: volume.name };
    const { spec, status } = view.claim;
    const requests = spec.resources?.requests;
    const info = {
      claimName,
      ...(spec.accessModes === undefined ? {} : { accessModes: spec.accessModes }),
      volumeMode: spec.volumeMode ?? 'Filesystem',
      ...(status?.capacity === undefined ? {} : { capacity: status.capacity }),
      ...(requests === undefined ? {} : { requests }),
    };
    return { name: volume.name, persistentVolumeClaimInfo: info };
  });
  return list.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
