/**
 * What is told of a migration, in the status of the migration and of the instance that it moves. Who writes what:
 *
 *   migrationState      controllers/migration: where from, where to, which claims, how it may go, how it ended
 *   migrationProgress   the agent of the node that has the guest: how far it is, and that it gave up or that the guest left
 */
import { bool, int64, list, obj, oneOf, quantity, str, time, type Infer } from '#kube/schema-dsl.ts';

/** How a migration may go: the settings of the KubeVirt object at the moment at which it began. */
export const migrationConfiguration = obj({
  bandwidthPerMigration: quantity({ description: 'Bytes per second; 0 is unlimited.' }),
  completionTimeoutPerGiB: int64({ description: 'Seconds for each GiB of memory and of disks that are copied.' }),
  progressTimeout: int64({ description: 'Seconds without any progress.' }),
  allowAutoConverge: bool({ description: 'Slows a guest down that writes faster than can be copied.' }),
});
export type MigrationConfiguration = Infer<typeof migrationConfiguration>;

export const migrationState = obj({
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
    description: 'Claims whose data lies on the source and moves with the guest, by name of the volume.',
  }),
  migrationConfiguration,
  startTimestamp: time(),
  endTimestamp: time(),
  targetNodeDomainReadyTimestamp: time({ description: 'When the guest went on at the target.' }),
  abortRequested: bool(),
  abortStatus: oneOf(['Aborting', 'Succeeded', 'Failed']),
  completed: bool({ description: 'It is over, one way or the other; see failed.' }),
  failed: bool(),
  failureReason: str(),
});
export type MigrationState = Infer<typeof migrationState>;

/**
 *   Connecting ─► Copying ─► Switching ─► Committed: the guest belongs to the target, whatever happens now
 *        └───────────┴───────────┴──────► Failed: the guest stays where it is
 */
export const PROGRESS_PHASES = ['Connecting', 'Copying', 'Switching', 'Committed', 'Failed'] as const;

export const migrationProgress = obj(
  {
    migrationUid: str(),
    phase: oneOf(PROGRESS_PHASES),
    message: str({ description: 'Why it failed.' }),
    startTimestamp: time(),
    endTimestamp: time(),
    dataTotalBytes: int64({ description: 'Memory and mirrored disks.' }),
    dataProcessedBytes: int64(),
    dataRemainingBytes: int64(),
    bytesPerSecond: int64(),
    memoryRounds: int64({ description: 'How often changed memory was sent again.' }),
    downtimeMs: int64({ description: 'How long the guest stood still.' }),
  },
  { required: ['migrationUid', 'phase'] },
);
export type MigrationProgress = Infer<typeof migrationProgress>;

/** Whether the guest of the instance is on its way, or may be: from the first word to the agents until it is over. */
export function isMigrating(state: MigrationState | undefined): boolean {
  return state?.migrationUid !== undefined && state.completed !== true;
}
