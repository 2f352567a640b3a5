/** Distinguishes snapshots of persistent state from snapshots of disks, which are copied differently. Pure. */
import { stateKeysOfClaim } from '#api/storage/persistent-state.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

/** On VolumeSnapshots and their contents: `true` if the claim holds persistent state. */
export const SNAPSHOT_STATE_ANNOTATION = 'selfsame.io/snapshot-state';

/** On contents, copied to their VolumeSnapshots: `true` if the guest agent failed to freeze the file systems. */
export const NOT_QUIESCED_ANNOTATION = 'selfsame.io/snapshot-not-quiesced';

/**
 * Reports whether the claim is marked as persistent state. Its name does not count: users may give any name to a disk.
 */
export function isMarkedAsState(claim: PersistentVolumeClaim): boolean {
  return stateKeysOfClaim({ ...claim, metadata: { ...claim.metadata, name: '' } }).length > 0;
}

/** Limit for the archive of persistent state, in snapshots, exports and imports. */
export const MAX_STATE_ARCHIVE_BYTES = 16 * 2 ** 20;
