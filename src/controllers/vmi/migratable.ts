/** Decides whether the guest of an instance can be migrated. Only volumes can prevent that. Pure. */
import { claimNameOf } from '#api/storage/claim-names.ts';
import { decideVolumeMoves } from '#api/storage/volume-move.ts';
import { isDeleting } from '#kube/meta.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';

export const DISKS_NOT_MIGRATABLE = 'DisksNotLiveMigratable';

/** Returns why a volume prevents a migration, as a message, or undefined if none does. */
export function describeImmovableVolume({
  vmi: { spec },
  claims,
}: Pick<VmiWorld, 'vmi' | 'claims'>): string | undefined {
  const deleted = (spec.volumes ?? []).find((volume) => {
    const view = claims.get(claimNameOf(volume) ?? '');
    return view !== undefined && isDeleting(view.claim);
  });
  // The scheduler refuses a target pod with such a claim.
  if (deleted !== undefined) {
    return `cannot migrate VMI: volume ${deleted.name}: the claim ${claimNameOf(deleted) ?? ''} is being deleted`;
  }
  const volumeOf = (claimName: string) => claims.get(claimName)?.volume;
  const exists = new Map((spec.volumes ?? []).map((one) => [one.name, volumeOf(claimNameOf(one) ?? '') !== undefined]));
  const optional = new Set((spec.domain.devices?.disks ?? []).filter((disk) => disk.optional).map(({ name }) => name));
  for (const [name, move] of decideVolumeMoves(spec, volumeOf)) {
    // The guest was started without this volume.
    const isLeftOut = optional.has(name) && exists.get(name) !== true;
    if (move.is === 'stays' && !isLeftOut) return move.why;
  }
  return undefined;
}
