/** How a migration ends: nothing is left to be done, so that it says so and may go. Pure. */
import type { MigrationState } from '#api/migration-state.ts';
import { MIGRATION_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { dropFinalizer } from '#controllers/finalizers.ts';
import { statusOf } from '#controllers/migration/migration-status.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Plan } from '#runtime/plan.ts';

interface Ending {
  readonly phase: 'Succeeded' | 'Failed';
  readonly state: MigrationState;
  readonly message?: string;
  readonly note: EventNote;
}

export function ends(world: MigrationWorld, { note, ...telling }: Ending): Plan {
  return { status: statusOf(world, telling), events: [note], changes: release(world) };
}

/** It may be gone from now on. */
export function release({ migration }: MigrationWorld): Change[] {
  const why = 'nothing is left to be done for it';
  return dropFinalizer(MIGRATION_FINALIZER, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, why);
}
