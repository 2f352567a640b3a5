/**
 * Whether a launcher pod says that the guest has gone to the other node. A pod that took part in one migration as its
 * target may be the source of the next: what it says of the first must not be taken for the second. Pure.
 */
import { MIGRATED_REASON, MIGRATION_COMMITTED_CONDITION, MIGRATION_UID_LABEL } from '#api/names.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

/** Agents tell the uid of the migration in the condition's message. */
export function hasCommitted(pod: Pod | undefined, migrationUid: string | undefined): boolean {
  if (pod === undefined || migrationUid === undefined) return false;
  const committed = findCondition(pod.status?.conditions, MIGRATION_COMMITTED_CONDITION);
  if (committed?.status !== 'True') return false;
  if (committed.message) return committed.message === migrationUid;
  // Without one it can only be meant of the migration for which the pod was made, or of the first that takes its guest.
  const madeFor = pod.metadata.labels?.[MIGRATION_UID_LABEL];
  return madeFor === undefined || madeFor === migrationUid;
}

/** Of the source: it has said so, or has ended because of it. */
export function hasLeft(pod: Pod | undefined, migrationUid: string | undefined): boolean {
  return pod?.status?.reason === MIGRATED_REASON || hasCommitted(pod, migrationUid);
}
