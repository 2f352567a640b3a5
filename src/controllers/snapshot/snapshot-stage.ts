/**
 * How far one VirtualMachineSnapshot is, read from the world alone. Pure.
 *
 *   waiting ──held, nothing in the way──► ready to make ──content──► copying ──content ready──► taken
 *      └───────────────────┴───────────────────────────────────────────┴──► failed: late, source or content lost
 */
import { isMigrating } from '#api/migration-state.ts';
import { instanceOf } from '#controllers/snapshot/build-content.ts';
import { remainingMs, type HeldVm, type SnapshotWorld } from '#controllers/snapshot/snapshot-world.ts';
import { obstacleOf } from '#controllers/snapshot/source-volumes.ts';
import { isDeleting } from '#kube/meta.ts';
import { wasTaken } from '#api/virtual-machine-snapshot/kind.ts';

export interface Said {
  /** CamelCase, for programs. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
}

export type Stage =
  | ({ readonly is: 'waiting' | 'copying' | 'failed' } & Said)
  | { readonly is: 'ready to make'; readonly held: HeldVm }
  | { readonly is: 'taken' };

export const CONTENT_GONE = 'VirtualMachineSnapshotContent does not exist';

/** For a snapshot that neither has failed before nor is being deleted. */
export function stageOf(world: SnapshotWorld): Stage {
  const { snapshot, content, now } = world;
  if (wasTaken(snapshot) || (content?.status?.readyToUse === true && !isDeleting(content))) return { is: 'taken' };
  const lost = lossOf(world);
  if (lost !== undefined) return { is: 'failed', ...lost };
  const stage = unfinishedStage(world);
  // The disks of the guest are as they are to be: how long it takes to write that down is no failure.
  if (content?.status?.creationTime !== undefined && content.status.error === undefined) return stage;
  const leftMs = remainingMs(snapshot, now);
  if (leftMs === undefined || leftMs > 0) return stage;
  const message = 'snapshot deadline exceeded' + ('message' in stage ? `: ${stage.message}` : '');
  return { is: 'failed', reason: 'DeadlineExceeded', message };
}

/** What no waiting brings back. */
function lossOf(world: SnapshotWorld): Said | undefined {
  const { snapshot, content, vm } = world;
  const { sourceUID, virtualMachineSnapshotContentName: made } = snapshot.status ?? {};
  if (content === undefined && made) return { reason: 'ContentLost', message: CONTENT_GONE };
  if (content !== undefined && isDeleting(content)) {
    return { reason: 'ContentLost', message: 'VirtualMachineSnapshotContent was deleted' };
  }
  if (sourceUID && vm !== undefined && vm.metadata.uid !== sourceUID) {
    return { reason: 'SourceReplaced', message: 'Source was replaced by another VirtualMachine of the same name' };
  }
  // Once there is a content, all that matters of the VM is in it.
  if (sourceUID && vm === undefined && content === undefined) {
    return { reason: 'SourceLost', message: 'Source does not exist any more' };
  }
  const error = content?.status?.error;
  // The moment at which all disks of the guest were to be copied is gone.
  if (content === undefined || error === undefined || instanceOf(content) === undefined) return undefined;
  return { reason: 'CopyFailed', message: error.message ?? 'a disk could not be copied' };
}

/** Copies begin on the node on which the guest is, and stay there. */
function migrationOf({ vmi }: HeldVm): string | undefined {
  return isMigrating(vmi?.status?.migrationState) ? 'The VirtualMachineInstance is migrating' : undefined;
}

function unfinishedStage({ content, vm, held }: SnapshotWorld): Stage {
  if (content !== undefined) {
    const message = content.status?.error?.message ?? 'Source locked and operation in progress';
    return { is: 'copying', reason: 'Copying', message };
  }
  if (vm === undefined) return { is: 'waiting', reason: 'SourceNotFound', message: 'Source does not exist' };
  if (held === undefined) {
    return { is: 'waiting', reason: 'SourceNotLocked', message: 'Source not locked and prepared' };
  }
  const obstacle = migrationOf(held) ?? obstacleOf(held);
  if (obstacle !== undefined) return { is: 'waiting', reason: 'SourceNotReady', message: obstacle };
  return { is: 'ready to make', held };
}
