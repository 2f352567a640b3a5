/**
 * Restores the persistent state of the target, always into a new claim, also with InPlace. The claim has the marks of
 * the state from the beginning, but it does not count as the VM's state while the restore owns it.
 *
 *   created, owned by the restore ─► filled ─► the old claim: marked as replaced by this one
 *                                           ─► owned by the VM, and superseding the old claim, in one write
 *                                           ─► the old claim: marks removed, deleted
 *
 * So findStateClaim finds exactly one claim at any time, and the old claim is deleted after the new one has replaced it.
 * Only a claim with the mark of a replacement is deleted, which users cannot write, and never a disk of a VM. Pure.
 */
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { MIGRATION_NAME_LABEL, RESTORED_BY_ANNOTATION } from '#api/names.ts';
import {
  REPLACED_BY_ANNOTATION,
  replacedBy,
  STATE_LABEL,
  stateAnnotationOf,
  stateClaimName,
  stateKeyOf,
  stateSuffixOf,
  SUPERSEDES_ANNOTATION,
} from '#api/storage/persistent-state.ts';
import { isMarkedAsState } from '#api/storage/snapshot-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change } from '#runtime/plan.ts';

type Restore = Stored<VirtualMachineRestore>;
type Claim = Stored<PersistentVolumeClaim>;

/** Matches labels and annotations about the VM in the snapshot: the copy may be for another VM. */
const describesOldState = (key: string) => key.startsWith(`${STATE_LABEL}-`) || OLD_STATE_KEYS.has(key);
const OLD_STATE_KEYS: ReadonlySet<string> = new Set([
  STATE_LABEL,
  SUPERSEDES_ANNOTATION,
  REPLACED_BY_ANNOTATION,
  UPLOAD_ANNOTATION,
  MIGRATION_NAME_LABEL,
]);

/** Returns the name of the state claim; the restore creates no other claim with this name. */
export function stateClaimNameFor({ spec, metadata }: Restore): string {
  return stateClaimName(spec.target.name, stateSuffixOf(metadata.uid));
}

export function isStateClaim(restore: Restore, claimName: string): boolean {
  return claimName === stateClaimNameFor(restore);
}

export function markForTarget({ spec }: Restore, claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { name } = spec.target;
  const { labels, annotations } = claim.metadata;
  const metadata = {
    ...claim.metadata,
    labels: { ...withoutOldState(labels), [STATE_LABEL]: stateKeyOf(name) },
    annotations: { ...withoutOldState(annotations), [stateAnnotationOf(name)]: 'true' },
  };
  return { ...claim, metadata };
}

function withoutOldState(metadata: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !describesOldState(key)));
}

/**
 * Marks the current state as replaced by the claim, then makes the VM the owner of the claim, also with the policy None:
 * without an owner, a later VM would adopt it. A current state that is a disk as well only loses its marks.
 */
export function handOverRestoredState(world: RestoreWorld, claim: Claim, vm: Stored<VirtualMachine>): Change {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const old = world.currentState?.metadata.uid === uid ? undefined : world.currentState;
  if (old !== undefined && replacedBy(old) !== uid) return replaceState(world, old, uid);
  const annotations = { [SUPERSEDES_ANNOTATION]: old?.metadata.uid ?? null, [RESTORED_BY_ANNOTATION]: null };
  const body = { metadata: { resourceVersion, ownerReferences: [vmOwnerReference(vm)], annotations } };
  const why = 'the claim holds the state of the restored VM';
  return {
    do: 'patch',
    type: PERSISTENT_VOLUME_CLAIMS,
    name: { name, namespace },
    uid,
    patch: { type: 'merge', body },
    why,
  };
}

function replaceState({ restore, diskUserOf }: RestoreWorld, old: Claim, by: string): Change {
  const { name } = old.metadata;
  if (diskUserOf?.(name) !== undefined) return unmarkState(restore, old, 'the claim is a disk of a VM');
  const annotations = { [REPLACED_BY_ANNOTATION]: by };
  return patchClaim(old, { annotations }, 'the restored state replaces this one');
}

function unmarkState({ spec }: Restore, old: Claim, why: string): Change {
  const annotations = { [stateAnnotationOf(spec.target.name)]: null };
  return patchClaim(old, { annotations, labels: { [STATE_LABEL]: null } }, why);
}

function patchClaim({ metadata }: Claim, changed: object, why: string): Change {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, ...changed } } } as const;
  return { do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, patch, why };
}

/**
 * Removes the marks of the replaced claim, then deletes it if the VM owns it. A claim that a user provided is kept, and
 * so is a disk of any VM.
 */
export function retireOldState(world: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  return (world.replacedStates ?? []).flatMap((old) => retireClaim(world, old, vm));
}

function retireClaim({ restore, diskUserOf }: RestoreWorld, old: Claim, vm: Stored<VirtualMachine>): Change[] {
  if (isDeleting(old)) return [];
  const unmarked = 'the restored state has replaced this one';
  if (isMarkedAsState(old)) return [unmarkState(restore, old, unmarked)];
  const { name, namespace, uid } = old.metadata;
  if (controllerUid(old) !== vm.metadata.uid || diskUserOf?.(name) !== undefined) return [];
  const why = `Deleted PersistentVolumeClaim ${name}: ${unmarked}`;
  return [{ do: 'delete', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, why }];
}

/**
 * Returns an Event if the TPM was not restored: the guest may not be able to decrypt older disks with the newer TPM.
 */
export function stateKeptEvents({ restore, volumes, currentState }: RestoreWorld): EventNote[] {
  if (currentState === undefined || volumes.some(({ claimName }) => isStateClaim(restore, claimName))) return [];
  const { target, virtualMachineSnapshotName: snapshot, persistentStatePolicy: policy } = restore.spec;
  const cause = policy === 'Omit' ? 'persistentStatePolicy is Omit' : `Snapshot ${snapshot} has no persistent state`;
  const message =
    `${cause}: TPM and EFI variables of VirtualMachine ${target.name} ` +
    `were not restored (PersistentVolumeClaim ${currentState.metadata.name})`;
  return [{ type: 'Normal', reason: 'PersistentStateKept', message }];
}

export const STATE_COPIED_REASON = 'PersistentStateCopied';

/** Returns an Event if a VM of another name got the state: two VMs may then have the keys of one TPM. */
export function stateCopiedEvents({ restore, volumes, snapshot }: RestoreWorld): EventNote[] {
  const { target, virtualMachineSnapshotName: name } = restore.spec;
  const source = snapshot?.spec.source.name;
  const hasState = volumes.some(({ claimName }) => isStateClaim(restore, claimName));
  if (!hasState || source === undefined || source === target.name) return [];
  const message =
    `VirtualMachine ${target.name} has the TPM keys and EFI variables of VirtualMachine ${source} ` +
    `(snapshot ${name}); for a VM with its own TPM, restore with persistentStatePolicy: Omit`;
  return [{ type: 'Warning', reason: STATE_COPIED_REASON, message }];
}
