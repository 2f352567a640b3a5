/** The end of a migration: its final status and Event, and the removal of its finalizer. Pure. */
import type { MigrationState } from '#api/migration/migration-state.ts';
import { MIGRATION_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { removeFinalizer } from '#controllers/shared/finalizers.ts';
import { buildMigrationStatus } from '#controllers/migration/migration-status.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Plan } from '#runtime/plan.ts';

interface MigrationEnd {
  readonly phase: 'Succeeded' | 'Failed';
  readonly state: MigrationState;
  readonly message?: string;
  readonly note: EventNote;
}

export function endMigration(world: MigrationWorld, { note, ...status }: MigrationEnd): Plan {
  return { status: buildMigrationStatus(world, status), events: [note], changes: releaseMigration(world) };
}

/** Removes the finalizer, so that the migration can be deleted. */
export function releaseMigration({ migration }: MigrationWorld): Change[] {
  const why = 'the migration is finished';
  return removeFinalizer(MIGRATION_FINALIZER, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, why);
}
