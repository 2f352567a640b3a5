/** How snapshots of the state of a VM are told from snapshots of disks: the two are copied in different ways. Pure. */
import { stateKeysOfClaim } from '#api/persistent-state.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

/** On VolumeSnapshots and their contents: `true` where the claim holds the state of a VM and no disk. */
export const SNAPSHOT_STATE_ANNOTATION = 'selfsame.io/snapshot-state';

/** On contents, and from there on VolumeSnapshots: `true` where the guest's agent was to freeze its file systems and did not. */
export const NOT_QUIESCED_ANNOTATION = 'selfsame.io/snapshot-not-quiesced';

/** By a mark, never by its name: anybody may call the claim of a disk what he likes. */
export function isMarkedAsState(claim: PersistentVolumeClaim): boolean {
  return stateKeysOfClaim({ ...claim, metadata: { ...claim.metadata, name: '' } }).length > 0;
}

/** Of the one file that holds it, in snapshots and on its way out of the cluster and in. */
export const MAX_STATE_ARCHIVE_BYTES = 16 * 2 ** 20;
