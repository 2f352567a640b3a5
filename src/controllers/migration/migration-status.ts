/** What a migration says of itself: how far it is, what was decided, what it waits for. Pure. */
import type { MigrationState } from '#api/migration-state.ts';
import { MANUAL_RECOVERY_CONDITION } from '#api/names.ts';
import {
  isFinalPhase,
  MIGRATION_PHASES,
  type MigrationPhase,
  type MigrationStatus,
} from '#api/virtual-machine-instance-migration/kind.ts';
import {
  hasBegun,
  isTold,
  phaseOf,
  progressOf,
  rankOf,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { isDeleting } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

const ABORT_REQUESTED = 'migrationAbortRequested';

export interface Telling {
  /** What was decided, as it is from now on. */
  readonly state?: MigrationState;
  /** Unless it is further already. */
  readonly phase?: MigrationPhase;
  /** What it waits for, or why it failed. */
  readonly message?: string;
  /** Why nobody can say where the guest is. */
  readonly unknowable?: string;
}

export function statusOf(world: MigrationWorld, { state, phase, message, unknowable }: Telling): MigrationStatus {
  const old = world.migration.status ?? {};
  const next = furthest(phaseOf(world.migration), phase ?? reachedPhase(world));
  const progress = progressOf(world) ?? old.migrationProgress;
  const migrationState = state ?? old.migrationState;
  const conditions = conditionsOf(world, unknowable);
  return {
    phase: next,
    ...(message === undefined ? {} : { message }),
    phaseTransitionTimestamps: transitions(world, next),
    ...(conditions.length === 0 ? {} : { conditions: conditions as MigrationStatus['conditions'] }),
    ...(migrationState === undefined ? {} : { migrationState }),
    ...(progress === undefined ? {} : { migrationProgress: progress }),
  };
}

/** As far as it is not over. */
function reachedPhase(world: MigrationWorld): MigrationPhase {
  const { targetPod } = world;
  if (isTold(world)) {
    const { phase } = progressOf(world) ?? {};
    if (phase === 'Copying' || phase === 'Switching' || phase === 'Committed') return 'Running';
    return targetPod?.status?.phase === 'Running' ? 'TargetReady' : 'PreparingTarget';
  }
  if (!hasBegun(world)) return 'Pending';
  return targetPod?.spec.nodeName ? 'Scheduled' : 'Scheduling';
}

/** It only goes forward; what could not be seen of it for a moment has not gone back. */
function furthest(before: MigrationPhase, now: MigrationPhase): MigrationPhase {
  return rankOf(now) > rankOf(before) ? now : before;
}

/** Each phase that it went through, also where we saw several at a time; one that fails goes through no more. */
function transitions(
  { migration, now }: MigrationWorld,
  phase: MigrationPhase,
): MigrationStatus['phaseTransitionTimestamps'] {
  const told = migration.status?.phaseTransitionTimestamps ?? [];
  const passed = phase === 'Failed' ? [] : MIGRATION_PHASES.slice(0, rankOf(phase)).filter((one) => !isFinalPhase(one));
  const missing = [...passed, phase].filter((one) => !told.some((entry) => entry.phase === one));
  return [...told, ...missing.map((one) => ({ phase: one, phaseTransitionTimestamp: timestamp(now) }))];
}

function conditionsOf({ migration, now }: MigrationWorld, unknowable: string | undefined): readonly Condition[] {
  let conditions = (migration.status?.conditions ?? []) as readonly Condition[];
  const set = (next: NextCondition) => (conditions = setCondition(conditions, next, timestamp(now)));
  if (isDeleting(migration)) {
    const message = 'The migration was deleted, and is cancelled if that is still possible';
    set({ type: ABORT_REQUESTED, status: 'True', reason: 'Deleted', message });
  }
  if (unknowable !== undefined) {
    set({ type: MANUAL_RECOVERY_CONDITION, status: 'True', reason: 'OutcomeUnknown', message: unknowable });
  } else if (conditions.some(({ type }) => type === MANUAL_RECOVERY_CONDITION)) {
    set({
      type: MANUAL_RECOVERY_CONDITION,
      status: 'False',
      reason: 'OutcomeKnown',
      message: 'It is known, or decided, or to be heard from the nodes, where the guest is',
    });
  }
  return conditions;
}
