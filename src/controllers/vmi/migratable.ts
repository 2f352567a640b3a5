/** What keeps the guest of an instance on its node. All that is in it can move but for some volumes. Pure. */
import { claimNameOf } from '#api/claim-names.ts';
import { volumeMoves } from '#api/volume-move.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';

export const DISKS_NOT_MIGRATABLE = 'DisksNotLiveMigratable';

/** For people; undefined where it can move. */
export function migrationObstacle({ vmi: { spec }, claims }: Pick<VmiWorld, 'vmi' | 'claims'>): string | undefined {
  const volumeOf = (claimName: string) => claims.get(claimName)?.volume;
  const isThere = new Map(
    (spec.volumes ?? []).map((one) => [one.name, volumeOf(claimNameOf(one) ?? '') !== undefined]),
  );
  const optional = new Set((spec.domain.devices?.disks ?? []).filter((disk) => disk.optional).map(({ name }) => name));
  for (const [name, move] of volumeMoves(spec, volumeOf)) {
    // The guest began without it.
    const isLeftOut = optional.has(name) && isThere.get(name) !== true;
    if (move.is === 'stays' && !isLeftOut) return move.why;
  }
  return undefined;
}
