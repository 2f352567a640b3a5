/**
 * Decides the next step of one migration. Each step does everything that is possible at once, so that migrations take
 * little time, and each decision is written to the status before it is carried out. Pure.
 *
 *   Pending ──begin──► target created ──prepare──► on a node ──announce──► the agents decide ──handOver──► Succeeded
 *      └─────────────────────┴─────────────────────────┴─────────────────────────┴────────────windUp────► Failed
 */
import { MIGRATION_FINALIZER } from '#api/names.ts';
import type { MigrationState } from '#api/migration/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { beginMigration, prepareTarget } from '#controllers/migration/begin.ts';
import { releaseMigration } from '#controllers/migration/end-migration.ts';
import { addFinalizer } from '#controllers/shared/finalizers.ts';
import { handOver } from '#controllers/migration/hand-over.ts';
import { targetDeadline } from '#controllers/migration/target-deadline.ts';
import { checkReadyToBegin } from '#controllers/migration/check-readiness.ts';
import { buildMigrationStatus } from '#controllers/migration/migration-status.ts';
import {
  hasBegun,
  hasFinalizer,
  isMigrationFinished,
  isAnnounced,
  reportedProgressOf,
  migrationStateOf,
  type MigrationWorld,
  type StoredMigration,
} from '#controllers/migration/migration-world.ts';
import { findOutcome } from '#controllers/migration/outcome.ts';
import { announceMigration, writeInstanceState } from '#controllers/migration/announce.ts';
import { windUp } from '#controllers/migration/wind-up.ts';
import { isDeleting } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import { type Plan, MAX_CHANGES, type Change } from '#runtime/plan.ts';

/** The number of finished migrations of an instance that are kept. */
const MAX_FINISHED = 5;
/** The time for which a finished migration is kept if its VM and its instance are gone: as long as Events. */
const KEEP_WITHOUT_VM_MS = 3_600_000;

export function decideMigration(world: MigrationWorld): Plan {
  const { migration, vmi } = world;
  if (isMigrationFinished(migration)) return decideFinished(world);
  if (!isDeleting(migration) && !hasFinalizer(migration, MIGRATION_FINALIZER)) return holdMigration(world);
  const outcome = findOutcome(world);
  if (outcome.is === 'committed') return withEvent(handOver(world), outcome.note);
  if (outcome.is === 'aborted') return withEvent(windUp(world, outcome.why), outcome.note);
  if (isAnnounced(world) || vmi === undefined) return followAgents(world, outcome.whyUnknown);
  if (!hasBegun(world)) {
    const message = checkReadyToBegin(world);
    return message === undefined
      ? beginMigration(world, vmi)
      : { changes: [], status: buildMigrationStatus(world, { message }) };
  }
  return world.targetPod?.spec.nodeName ? announceMigration(world) : prepareTarget(world, vmi);
}

function withEvent(plan: Plan, note: EventNote | undefined): Plan {
  return note === undefined ? plan : { ...plan, events: [note, ...(plan.events ?? [])] };
}

/** Handles a finished migration. Only the progress that the agent reports can still change. */
function decideFinished(world: MigrationWorld): Plan {
  const { status } = world.migration;
  const migrationProgress = reportedProgressOf(world);
  const remainingMs = remainingMsWithoutVm(world);
  const expired = remainingMs !== undefined && remainingMs <= 0 ? removeMigration(world.migration) : [];
  return {
    changes: [...releaseMigration(world), ...(expired.length > 0 ? expired : pruneFinished(world))],
    requeueAfterMs: expired.length > 0 ? undefined : remainingMs,
    status: migrationProgress === undefined ? undefined : { ...status, migrationProgress },
  };
}

/** Adds the finalizer if the webhook did not. */
function holdMigration({ migration }: MigrationWorld): Plan {
  const why = 'the objects that the migration creates must be removed before it is';
  return { changes: addFinalizer(MIGRATION_FINALIZER, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, why) };
}

/** Waits for the agents, which decide the outcome. Asks them to abort if the migration was deleted or is too late. */
function followAgents(world: MigrationWorld, whyUnknown: string | undefined): Plan {
  const deadline = targetDeadline(world);
  const current = migrationStateOf(world);
  const mustAbort = isDeleting(world.migration) || deadline?.exceeded !== undefined;
  const state: MigrationState =
    mustAbort && current.abortRequested !== true
      ? { ...current, abortRequested: true, abortStatus: 'Aborting' }
      : current;
  const message = whyUnknown ?? (isDeleting(world.migration) ? 'the migration is being cancelled' : deadline?.exceeded);
  return {
    status: buildMigrationStatus(world, { state, message, whyUnknown }),
    changes: writeInstanceState(world, state, 'the migration is to be aborted'),
    requeueAfterMs: deadline?.exceeded === undefined ? deadline?.remainingMs : undefined,
  };
}

/** Deletes all but the newest finished migrations of an instance. */
function pruneFinished({ finished }: Pick<MigrationWorld, 'finished'>): Change[] {
  const old = finished.toSorted(newestFirst).slice(MAX_FINISHED);
  return old
    .filter((migration) => !isDeleting(migration))
    .slice(0, MAX_CHANGES / 2)
    .map((migration) => deleteMigration(migration, `the instance has ${MAX_FINISHED} newer ones`));
}

/** Returns how long a finished migration is still kept, or undefined if its VM or its instance exists. */
function remainingMsWithoutVm({ migration, vm, vmi, now }: MigrationWorld): number | undefined {
  if (vm !== undefined || vmi !== undefined) return undefined;
  const { status, metadata } = migration;
  return Date.parse(status?.migrationState?.endTimestamp ?? metadata.creationTimestamp) + KEEP_WITHOUT_VM_MS - now;
}

function removeMigration(migration: StoredMigration): Change[] {
  return isDeleting(migration) ? [] : [deleteMigration(migration, 'it has finished, and its VM no longer exists')];
}

function deleteMigration({ metadata: { namespace, name, uid } }: StoredMigration, reason: string): Change {
  const why = `Deleted migration ${name}: ${reason}`;
  return { do: 'delete', type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, name: { namespace, name }, uid, why };
}

function newestFirst({ metadata: a }: StoredMigration, { metadata: b }: StoredMigration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp ? -1 : 1;
  return a.name < b.name ? 1 : -1;
}
