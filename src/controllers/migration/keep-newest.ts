/** Only the newest of the finished migrations of an instance are kept. Pure. */
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import type { Migration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { isDeleting } from '#kube/meta.ts';
import { MAX_CHANGES, type Change } from '#runtime/plan.ts';

export const KEPT = 5;

export function keepNewest({ finished }: Pick<MigrationWorld, 'finished'>): Change[] {
  const old = finished.toSorted(newestFirst).slice(KEPT);
  return old
    .filter((migration) => !isDeleting(migration))
    .slice(0, MAX_CHANGES / 2)
    .map(({ metadata: { namespace, name, uid } }) => ({
      do: 'delete',
      type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
      name: { namespace, name },
      uid,
      why: `Deleted migration ${name}: there are ${KEPT} newer ones`,
    }));
}

function newestFirst({ metadata: a }: Migration, { metadata: b }: Migration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp ? -1 : 1;
  return a.name < b.name ? 1 : -1;
}
