/**
 * What is done about one migration. All that can be done is done in one turn, for the guest's sake and that of those who
 * wait; what was decided is in the status before it is done. Pure.
 *
 *   Pending ──begin──► target made ──prepare──► on a node ──tellAgents──► the agents decide ──handOver──► Succeeded
 *      └───────────────────┴────────────────────────┴───────────────────────────┴─────────────windUp────► Failed
 */
import { MIGRATION_FINALIZER } from '#api/names.ts';
import type { MigrationState } from '#api/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { begin, prepare } from '#controllers/migration/begin.ts';
import { release } from '#controllers/migration/ending.ts';
import { addFinalizer } from '#controllers/migration/finalizers.ts';
import { handOver } from '#controllers/migration/hand-over.ts';
import { keepNewest } from '#controllers/migration/keep-newest.ts';
import { lateness } from '#controllers/migration/lateness.ts';
import { obstacleOf } from '#controllers/migration/limits.ts';
import { statusOf } from '#controllers/migration/migration-status.ts';
import {
  hasBegun,
  hasFinalizer,
  isFinished,
  isTold,
  progressOf,
  recordOf,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { outcomeOf } from '#controllers/migration/outcome.ts';
import { tellAgents, tellInstance } from '#controllers/migration/tell.ts';
import { windUp } from '#controllers/migration/wind-up.ts';
import { isDeleting } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';

export function decideMigration(world: MigrationWorld): Plan {
  const { migration, vmi } = world;
  if (isFinished(migration)) return afterwards(world);
  if (!isDeleting(migration) && !hasFinalizer(migration, MIGRATION_FINALIZER)) return hold(world);
  const outcome = outcomeOf(world);
  if (outcome.is === 'committed') return noting(handOver(world), outcome.note);
  if (outcome.is === 'aborted') return noting(windUp(world, outcome.why), outcome.note);
  if (isTold(world) || vmi === undefined) return follow(world, outcome.unknowable);
  if (!hasBegun(world)) {
    const message = obstacleOf(world);
    return message === undefined ? begin(world, vmi) : { changes: [], status: statusOf(world, { message }) };
  }
  return world.targetPod?.spec.nodeName ? tellAgents(world) : prepare(world, vmi);
}

function noting(plan: Plan, note: EventNote | undefined): Plan {
  return note === undefined ? plan : { ...plan, events: [note, ...(plan.events ?? [])] };
}

/** Nothing of it changes any more, but for what the agent still has to say of it. */
function afterwards(world: MigrationWorld): Plan {
  const { status } = world.migration;
  const migrationProgress = progressOf(world);
  return {
    changes: [...release(world), ...keepNewest(world)],
    status: migrationProgress === undefined ? undefined : { ...status, migrationProgress },
  };
}

/** The webhook puts it on; this is for when it did not. */
function hold({ migration }: MigrationWorld): Plan {
  const why = 'what was made for it must not be left behind';
  return { changes: addFinalizer(MIGRATION_FINALIZER, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, why) };
}

/** The agents decide; they can be asked to give it up. */
function follow(world: MigrationWorld, unknowable: string | undefined): Plan {
  const late = lateness(world);
  const record = recordOf(world);
  const givesUp = isDeleting(world.migration) || late?.late !== undefined;
  const state: MigrationState =
    givesUp && record.abortRequested !== true ? { ...record, abortRequested: true, abortStatus: 'Aborting' } : record;
  const message = unknowable ?? (isDeleting(world.migration) ? 'the migration is being cancelled' : late?.late);
  return {
    status: statusOf(world, { state, message, unknowable }),
    changes: tellInstance(world, state, 'the migration of its guest is to be given up'),
    requeueAfterMs: late?.late === undefined ? late?.leftMs : undefined,
  };
}
