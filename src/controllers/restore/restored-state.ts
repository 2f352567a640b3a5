/**
 * Restores the persistent state of the target, always into a new claim, also with InPlace. The claim has the marks of
 * the state from the beginning, but it does not count as the VM's state while the restore owns it.
 *
 *   created, owned by the restore ─► filled ─► owned by the VM, and superseding the old claim, in one write
 *                                           ─► the old claim: marks removed, deleted
 *
 * So findStateClaim finds exactly one claim at any time, and the old claim is deleted after the new one has replaced it.
 * Pure.
 */
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { MIGRATION_NAME_LABEL } from '#api/names.ts';
import {
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
 * Makes the VM the owner of the state claim, also with the policy None: without an owner, a later VM would adopt it.
 */
export function handOverRestoredState(
  { currentState }: RestoreWorld,
  claim: Claim,
  vm: Stored<VirtualMachine>,
): Change {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const old = currentState?.metadata.uid;
  const annotations = old === undefined || old === uid ? {} : { [SUPERSEDES_ANNOTATION]: old };
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

/**
 * Removes the marks of the superseded claim, and deletes it if the VM owns it. A claim that a user provided is kept.
 */
export function retireOldState({ restore, supersededState: old }: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  if (old === undefined || isDeleting(old)) return [];
  const { name, namespace, uid } = old.metadata;
  const target = { type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid };
  const unmarked = 'the restored state has replaced this one';
  const deleted = `Deleted PersistentVolumeClaim ${name}: ${unmarked}`;
  const marks = {
    annotations: { [stateAnnotationOf(restore.spec.target.name)]: null },
    labels: { [STATE_LABEL]: null },
  };
  const patch = { type: 'merge', body: { metadata: marks } } as const;
  return [
    ...(isMarkedAsState(old) ? [{ do: 'patch', ...target, patch, why: unmarked } as const] : []),
    ...(controllerUid(old) === vm.metadata.uid ? [{ do: 'delete', ...target, why: deleted } as const] : []),
  ];
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
