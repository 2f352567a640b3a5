/**
 * Reads from a launcher pod whether a migration is committed, so that the guest belongs to the target node. The target
 * pod of one migration may be the source pod of the next; its condition about the first must not be taken for the
 * second. Pure.
 */
import { MIGRATED_REASON, MIGRATION_COMMITTED_CONDITION, MIGRATION_UID_LABEL } from '#api/names.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

/**
 * Reports whether the pod shows the migration as committed. The message of the condition is the uid of the migration.
 */
export function hasCommitted(pod: Pod | undefined, migrationUid: string | undefined): boolean {
  if (pod === undefined || migrationUid === undefined) return false;
  const committed = findCondition(pod.status?.conditions, MIGRATION_COMMITTED_CONDITION);
  if (committed?.status !== 'True') return false;
  if (committed.message) return committed.message === migrationUid;
  // Without a message it is the migration for which the pod was created or, for the first pod, its first migration.
  const madeFor = pod.metadata.labels?.[MIGRATION_UID_LABEL];
  return madeFor === undefined || madeFor === migrationUid;
}

/** Reports whether the guest has left this source pod: the migration is committed, or ended the pod. */
export function hasLeft(pod: Pod | undefined, migrationUid: string | undefined): boolean {
  return pod?.status?.reason === MIGRATED_REASON || hasCommitted(pod, migrationUid);
}
