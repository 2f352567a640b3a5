/**
 * Status fields of a migration and of its instance. Writers:
 *
 *   migrationState      controllers/migration: source, target, claims, settings and result
 *   migrationProgress   the agent of the source node: progress, and whether the migration failed or was committed
 */
import { bool, int64, list, obj, oneOf, quantity, str, time, type Infer } from '#kube/schema-dsl.ts';

/** Settings of a migration, copied from the KubeVirt object when it began. */
const migrationConfiguration = obj({
  bandwidthPerMigration: quantity({ description: 'Bytes per second; 0 means unlimited.' }),
  completionTimeoutPerGiB: int64({ description: 'Timeout in seconds for each GiB of memory and of copied disks.' }),
  progressTimeout: int64({ description: 'The migration fails after this many seconds without progress.' }),
  allowAutoConverge: bool({ description: 'Slows the guest down if it changes memory faster than it can be copied.' }),
});
export type MigrationConfiguration = Infer<typeof migrationConfiguration>;

export const migrationStateSchema = obj({
  migrationUid: str(),
  mode: oneOf(['PreCopy']),
  sourceNode: str(),
  sourcePod: str(),
  targetNode: str(),
  targetPod: str(),
  targetPodUID: str(),
  sourcePersistentStatePVCName: str(),
  targetPersistentStatePVCName: str(),
  mirroredVolumes: list(str(), {
    description: 'Names of the volumes whose data is on the source node and is copied to the target.',
  }),
  migrationConfiguration,
  startTimestamp: time(),
  endTimestamp: time(),
  targetNodeDomainReadyTimestamp: time({ description: 'The time at which the guest resumed on the target.' }),
  abortRequested: bool(),
  abortStatus: oneOf(['Aborting', 'Succeeded', 'Failed']),
  completed: bool({ description: 'True if the migration has ended, whether it succeeded or failed; see failed.' }),
  failed: bool(),
  failureReason: str(),
});
export type MigrationState = Infer<typeof migrationStateSchema>;

/**
 *   Connecting ─► Copying ─► Switching ─► Committed: the guest belongs to the target, whatever happens next
 *        └───────────┴───────────┴──────► Failed: the guest stays on the source
 */
const PROGRESS_PHASES = ['Connecting', 'Copying', 'Switching', 'Committed', 'Failed'] as const;

export const migrationProgressSchema = obj(
  {
    migrationUid: str(),
    phase: oneOf(PROGRESS_PHASES),
    message: str({ description: 'The reason for the failure.' }),
    startTimestamp: time(),
    endTimestamp: time(),
    dataTotalBytes: int64({ description: 'Size of memory and mirrored disks.' }),
    dataProcessedBytes: int64(),
    dataRemainingBytes: int64(),
    bytesPerSecond: int64(),
    memoryRounds: int64({ description: 'Number of times that changed memory was sent again.' }),
    downtimeMs: int64({ description: 'Time for which the guest was stopped.' }),
  },
  { required: ['migrationUid', 'phase'] },
);
export type MigrationProgress = Infer<typeof migrationProgressSchema>;

/** Reports whether a migration of the instance is running: from the first message to the node agents until the end. */
export function isMigrating(state: MigrationState | undefined): boolean {
  return state?.migrationUid !== undefined && state.completed !== true;
}
