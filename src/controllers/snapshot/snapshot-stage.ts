/**
 * The stage of one VirtualMachineSnapshot, computed from the world. Pure.
 *
 *   waiting ──held, no refusal──► ready to create ──content──► copying ──content ready──► taken
 *      └────────────────┴─────────────────────────────────────────┴──► failed: deadline, source lost, content lost
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import { instanceUidOf } from '#controllers/snapshot/build-content.ts';
import { untilDeadlineMs, type HeldVm, type SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { checkHeldVm, findDeletedClaim } from '#controllers/snapshot/source-volumes.ts';
import { isDeleting } from '#kube/meta.ts';
import { isSnapshotComplete } from '#api/virtual-machine-snapshot/kind.ts';

export interface Explanation {
  /** Reason of the conditions, in CamelCase. */
  readonly reason: string;
  /** Message of the conditions. */
  readonly message: string;
}

export type SnapshotStage =
  | ({ readonly is: 'waiting' | 'copying' | 'failed' } & Explanation)
  | { readonly is: 'ready to create'; readonly held: HeldVm }
  | { readonly is: 'taken' };

export const CONTENT_MISSING = 'VirtualMachineSnapshotContent does not exist';

/** Returns the stage of a snapshot that has not failed before and is not being deleted. */
export function stageOf(world: SnapshotWorld): SnapshotStage {
  const { snapshot, content, now } = world;
  if (isSnapshotComplete(snapshot) || (content?.status?.readyToUse === true && !isDeleting(content)))
    return { is: 'taken' };
  const failure = findPermanentFailure(world);
  if (failure !== undefined) return { is: 'failed', ...failure };
  const stage = unfinishedStage(world);
  // The point in time is fixed: the deadline does not limit how long the copies take.
  if (content?.status?.creationTime !== undefined && content.status.error === undefined) return stage;
  const remainingMs = untilDeadlineMs(snapshot, now);
  if (remainingMs === undefined || remainingMs > 0) return stage;
  const message = 'snapshot deadline exceeded' + ('message' in stage ? `: ${stage.message}` : '');
  return { is: 'failed', reason: 'DeadlineExceeded', message };
}

/** Returns the permanent failure of the snapshot, if there is one. */
function findPermanentFailure(world: SnapshotWorld): Explanation | undefined {
  const { snapshot, content, vm, held } = world;
  const { sourceUID, virtualMachineSnapshotContentName: contentName } = snapshot.status ?? {};
  if (content === undefined && contentName) return { reason: 'ContentLost', message: CONTENT_MISSING };
  if (content !== undefined && isDeleting(content)) {
    return { reason: 'ContentLost', message: 'VirtualMachineSnapshotContent was deleted' };
  }
  if (sourceUID && vm !== undefined && vm.metadata.uid !== sourceUID) {
    return { reason: 'SourceReplaced', message: 'Source was replaced by another VirtualMachine of the same name' };
  }
  // Once the content exists, the VM is not needed any more.
  if (sourceUID && vm === undefined && content === undefined) {
    return { reason: 'SourceLost', message: 'Source does not exist any more' };
  }
  const deleted = content === undefined && held !== undefined ? findDeletedClaim(held) : undefined;
  if (deleted !== undefined) return { reason: 'ClaimBeingDeleted', message: deleted };
  const error = content?.status?.error;
  // The disks of a running guest cannot be copied again as of the same point in time.
  if (content === undefined || error === undefined || instanceUidOf(content) === undefined) return undefined;
  return { reason: 'CopyFailed', message: error.message ?? 'A disk could not be copied' };
}

/** Refuses a snapshot during a migration: the copies are made on the node of the guest. */
function refuseDuringMigration({ vmi }: HeldVm): string | undefined {
  return isMigrating(vmi?.status?.migrationState) ? 'The VirtualMachineInstance is migrating' : undefined;
}

function unfinishedStage({ content, vm, held }: SnapshotWorld): SnapshotStage {
  if (content !== undefined) {
    const message = content.status?.error?.message ?? 'Source locked and operation in progress';
    return { is: 'copying', reason: 'Copying', message };
  }
  if (vm === undefined) return { is: 'waiting', reason: 'SourceNotFound', message: 'Source does not exist' };
  if (held === undefined) {
    return { is: 'waiting', reason: 'SourceNotLocked', message: 'Source not locked and prepared' };
  }
  const refusal = refuseDuringMigration(held) ?? checkHeldVm(held);
  if (refusal !== undefined) return { is: 'waiting', reason: 'SourceNotReady', message: refusal };
  return { is: 'ready to create', held };
}
