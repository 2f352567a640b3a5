/**
 * The persistent state of the target: always a claim of its own, never one that is replaced in its place. It has the marks
 * from the beginning, but as long as the restore owns it nobody takes it for the VM's.
 *
 *   made, owned by the restore ─► filled ─► the VM's, in one write that also says whose place it takes ─► the old one:
 *                                           marks off, deleted
 *
 * So at every moment one claim is found to hold the state (findState), and the old one goes when the new one is it. Pure.
 */
import { UPLOAD_ANNOTATION } from '#api/disk-stream.ts';
import { MIGRATION_NAME_LABEL } from '#api/names.ts';
import {
  STATE_LABEL,
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  stateSuffixOf,
  SUPERSEDES_ANNOTATION,
} from '#api/persistent-state.ts';
import { isMarkedAsState } from '#api/snapshot-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change } from '#runtime/plan.ts';

type Restore = Stored<VirtualMachineRestore>;
type Claim = Stored<PersistentVolumeClaim>;

/** Also what a snapshot has said of the VM that it is of: the copy may be for another. */
const isOfOldState = (key: string) => key.startsWith(`${STATE_LABEL}-`) || OLD.has(key);
const OLD: ReadonlySet<string> = new Set([STATE_LABEL, SUPERSEDES_ANNOTATION, UPLOAD_ANNOTATION, MIGRATION_NAME_LABEL]);

/** The restore makes no other claim of such a name. */
export function stateClaimNameFor({ spec, metadata }: Restore): string {
  return stateClaimName(spec.target.name, stateSuffixOf(metadata.uid));
}

export function isStateClaim(restore: Restore, claimName: string): boolean {
  return claimName === stateClaimNameFor(restore);
}

export function markedForTarget({ spec }: Restore, claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { name } = spec.target;
  const { labels, annotations } = claim.metadata;
  const metadata = {
    ...claim.metadata,
    labels: { ...lasting(labels), [STATE_LABEL]: stateKeyOf(name) },
    annotations: { ...lasting(annotations), [stateAnnotationOf(name)]: 'true' },
  };
  return { ...claim, metadata };
}

function lasting(notes: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(notes).filter(([key]) => !isOfOldState(key)));
}

/** The VM's, whoever its disks go to: state without an owner would be the next VM's of that name. */
export function handOverState({ currentState }: RestoreWorld, claim: Claim, vm: Stored<VirtualMachine>): Change {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const old = currentState?.metadata.uid;
  const annotations = old === undefined || old === uid ? {} : { [SUPERSEDES_ANNOTATION]: old };
  const body = { metadata: { resourceVersion, ownerReferences: [ownedByVm(vm)], annotations } };
  const why = 'the restored VM has its state in it now';
  return {
    do: 'patch',
    type: PERSISTENT_VOLUME_CLAIMS,
    name: { name, namespace },
    uid,
    patch: { type: 'merge', body },
    why,
  };
}

/** One that somebody has brought, and nobody owns, is left to him; it counts no more. */
export function retireState({ restore, supersededState: old }: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  if (old === undefined || isDeleting(old)) return [];
  const { name, namespace, uid } = old.metadata;
  const target = { type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid };
  const why = 'the restored state has taken its place';
  const marks = {
    annotations: { [stateAnnotationOf(restore.spec.target.name)]: null },
    labels: { [STATE_LABEL]: null },
  };
  const patch = { type: 'merge', body: { metadata: marks } } as const;
  return [
    ...(isMarkedAsState(old) ? [{ do: 'patch', ...target, patch, why } as const] : []),
    ...(controllerUid(old) === vm.metadata.uid ? [{ do: 'delete', ...target, why } as const] : []),
  ];
}

/** Disks of old beside a TPM of today may not open: whoever has sealed something there wants to know. */
export function keptState({ restore, volumes, currentState }: RestoreWorld): EventNote[] {
  if (currentState === undefined || volumes.some(({ claimName }) => isStateClaim(restore, claimName))) return [];
  const { target, virtualMachineSnapshotName: snapshot } = restore.spec;
  const message =
    `Snapshot ${snapshot} holds no persistent state: TPM and EFI variables of VirtualMachine ${target.name} ` +
    `stay as they are (PersistentVolumeClaim ${currentState.metadata.name})`;
  return [{ type: 'Normal', reason: 'PersistentStateKept', message }];
}
