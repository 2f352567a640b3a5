/** The status of a migration: its phase, the decisions so far, and what it waits for. Pure. */
import type { MigrationProgress, MigrationState } from '#api/migration/migration-state.ts';
import { MANUAL_RECOVERY_CONDITION } from '#api/names.ts';
import {
  isFinalPhase,
  MIGRATION_PHASES,
  type MigrationPhase,
  type MigrationStatus,
} from '#api/virtual-machine-instance-migration/kind.ts';
import {
  hasBegun,
  isAnnounced,
  migrationPhaseOf,
  reportedProgressOf,
  phaseRank,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { isDeleting } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

const ABORT_REQUESTED = 'migrationAbortRequested';

interface MigrationStatusInput {
  /** The new migrationState; absent keeps the current one. */
  readonly state?: MigrationState;
  /** Ignored if the migration has already reached a later phase. */
  readonly phase?: MigrationPhase;
  /** The reason to wait, or the reason of the failure. */
  readonly message?: string;
  /** The reason why no node can report the location of the guest. */
  readonly whyUnknown?: string;
}

export function buildMigrationStatus(
  world: MigrationWorld,
  { state, phase, message, whyUnknown }: MigrationStatusInput,
): MigrationStatus {
  const old = world.migration.status ?? {};
  const next = laterPhase(migrationPhaseOf(world.migration), phase ?? reachedPhase(world));
  const progress = reportedProgressOf(world) ?? old.migrationProgress;
  const migrationState = state ?? old.migrationState;
  const conditions = buildConditions(world, whyUnknown);
  const percent = formatProgress(next, progress);
  return {
    phase: next,
    ...(message === undefined ? {} : { message }),
    phaseTransitionTimestamps: buildTransitions(world, next),
    ...(conditions.length === 0 ? {} : { conditions: conditions as MigrationStatus['conditions'] }),
    ...(percent === undefined ? {} : { progress: percent }),
    ...(migrationState === undefined ? {} : { migrationState }),
    ...(progress === undefined ? {} : { migrationProgress: progress }),
  };
}

/** Returns `45%`, and 100% only once the guest is on the target; undefined if the amount of data is not known yet. */
export function formatProgress(phase: MigrationPhase, progress: MigrationProgress | undefined): string | undefined {
  if (phase === 'Succeeded') return '100%';
  const { dataTotalBytes: total = 0, dataRemainingBytes: remaining } = progress ?? {};
  if (total <= 0 || remaining === undefined) return undefined;
  return `${Math.min(99, Math.max(0, Math.floor((1 - remaining / total) * 100)))}%`;
}

/** Returns the phase of a migration that is not finished. */
function reachedPhase(world: MigrationWorld): MigrationPhase {
  const { targetPod } = world;
  if (isAnnounced(world)) {
    const { phase } = reportedProgressOf(world) ?? {};
    if (phase === 'Copying' || phase === 'Switching' || phase === 'Committed') return 'Running';
    return targetPod?.status?.phase === 'Running' ? 'TargetReady' : 'PreparingTarget';
  }
  if (!hasBegun(world)) return 'Pending';
  return targetPod?.spec.nodeName ? 'Scheduled' : 'Scheduling';
}

/** Returns the later of two phases. Phases never go back: an object may only be missing from a cache for a moment. */
function laterPhase(before: MigrationPhase, now: MigrationPhase): MigrationPhase {
  return phaseRank(now) > phaseRank(before) ? now : before;
}

/** Adds a timestamp for each phase up to the current one, also for those between two reconciles, unless it failed. */
function buildTransitions(
  { migration, now }: MigrationWorld,
  phase: MigrationPhase,
): MigrationStatus['phaseTransitionTimestamps'] {
  const recorded = migration.status?.phaseTransitionTimestamps ?? [];
  const passed =
    phase === 'Failed' ? [] : MIGRATION_PHASES.slice(0, phaseRank(phase)).filter((one) => !isFinalPhase(one));
  const missing = [...passed, phase].filter((one) => !recorded.some((entry) => entry.phase === one));
  return [...recorded, ...missing.map((one) => ({ phase: one, phaseTransitionTimestamp: timestamp(now) }))];
}

function buildConditions({ migration, now }: MigrationWorld, whyUnknown: string | undefined): readonly Condition[] {
  let conditions = (migration.status?.conditions ?? []) as readonly Condition[];
  const set = (next: NextCondition) => (conditions = setCondition(conditions, next, timestamp(now)));
  if (isDeleting(migration)) {
    const message = 'The migration was deleted; it is cancelled if that is still possible';
    set({ type: ABORT_REQUESTED, status: 'True', reason: 'Deleted', message });
  }
  if (whyUnknown !== undefined) {
    set({ type: MANUAL_RECOVERY_CONDITION, status: 'True', reason: 'OutcomeUnknown', message: whyUnknown });
  } else if (conditions.some(({ type }) => type === MANUAL_RECOVERY_CONDITION)) {
    set({
      type: MANUAL_RECOVERY_CONDITION,
      status: 'False',
      reason: 'OutcomeKnown',
      message: 'The location of the guest is known, or the nodes can report it',
    });
  }
  return conditions;
}
