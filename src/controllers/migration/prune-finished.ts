/** Deletes all but the newest finished migrations of an instance. Pure. */
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import type { StoredMigration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { isDeleting } from '#kube/meta.ts';
import { MAX_CHANGES, type Change } from '#runtime/plan.ts';

export const MAX_FINISHED = 5;

export function pruneFinished({ finished }: Pick<MigrationWorld, 'finished'>): Change[] {
  const old = finished.toSorted(newestFirst).slice(MAX_FINISHED);
  return old
    .filter((migration) => !isDeleting(migration))
    .slice(0, MAX_CHANGES / 2)
    .map(({ metadata: { namespace, name, uid } }) => ({
      do: 'delete',
      type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
      name: { namespace, name },
      uid,
      why: `Deleted migration ${name}: the instance has ${MAX_FINISHED} newer ones`,
    }));
}

function newestFirst({ metadata: a }: StoredMigration, { metadata: b }: StoredMigration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp ? -1 : 1;
  return a.name < b.name ? 1 : -1;
}
