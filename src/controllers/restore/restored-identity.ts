/**
 * Restores the identity record from the snapshot: the identity (spec) and the devices (status). For a new target the
 * record is written before the VM, so that it exists at the first start. For an existing target it is written after the
 * VM, so that a cancelled restore has changed nothing. A snapshot without a record leaves that of the target unchanged.
 * Pure.
 */
import { diffIdentityStates, buildIdentityState } from '#api/identity/identity-changes.ts';
import { appendHistory, buildHistoryEntries } from '#api/identity/identity-history.ts';
import {
  type HistoryEntry,
  type IdentitySpec,
  type IdentityStatus,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import { hasRecordFinalizer, isBeingRemoved } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { ContentSpec, SnapshotIdentity } from '#api/virtual-machine-snapshot-content/kind.ts';
import { restoreOwnerReference } from '#controllers/restore/build-claim.ts';
import { firmwareOf, snapshotUuidOf } from '#controllers/restore/build-restored-vm.ts';
import { isStateClaim } from '#controllers/restore/restored-state.ts';
import { type RestoreWorld, unchangedOperation } from '#controllers/restore/restore-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { apiVersionOf, controllerOf, isDeleting, type OwnerReference, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change } from '#runtime/plan.ts';

type RecordStep = { readonly change: Change } | { readonly wait: string };

const TYPE = VIRTUAL_MACHINE_IDENTITIES;

/** Returns the next step before `newVm` is created, or undefined if the record is complete. */
export function restoreRecordBeforeVm(
  world: RestoreWorld,
  content: ContentSpec,
  newVm: VirtualMachine,
): RecordStep | undefined {
  const { record, restore } = world;
  const { virtualMachineIdentity: identity } = content.source;
  if (identity === undefined) return undefined;
  const spec = buildRecordSpec(world, content, newVm);
  // The VM does not exist, so a record with an owner belongs to an earlier VM.
  if (record !== undefined && (isDeleting(record) || controllerOf(record) !== undefined))
    return waitForDeletion(record);
  if (record === undefined)
    return { change: createRecord(world, spec, restoreOwnerReference(restore, { controller: false })) };
  if (!deepEqual(record.spec, spec)) return { change: patchSpec(record, spec) };
  if (isRecordRestored(world, record)) return undefined;
  return { change: patchStatus(world, record, identity, identity) };
}

/** Returns the next step after the VM was written, or undefined if the record is complete. */
export function restoreRecordAfterVm(
  world: RestoreWorld,
  content: ContentSpec | undefined,
  vm: Stored<VirtualMachine>,
): RecordStep | undefined {
  const { record } = world;
  const identity = content?.source.virtualMachineIdentity;
  if (content === undefined || identity === undefined || isDeleting(vm)) return undefined;
  const spec = buildRecordSpec(world, content, vm);
  if (record === undefined) return { change: createRecord(world, spec, vmOwnerReference(vm), [RECORD_FINALIZER]) };
  const owner = controllerOf(record);
  const isOwned = owner?.uid === vm.metadata.uid;
  if (isOwned ? isBeingRemoved(record) : isDeleting(record) || owner !== undefined) return waitForDeletion(record);
  // Once the history has this entry, the VM controller owns the spec again.
  if (isRecordRestored(world, record)) return undefined;
  if (!deepEqual(record.spec, spec)) return { change: patchSpec(record, spec) };
  // The history since the snapshot is kept.
  const before = record.status?.history === undefined ? identity : record;
  // A snapshot from before the first start has no devices, so the VM keeps its current ones.
  const saved = identity.status?.devices === undefined ? { ...identity, status: record.status } : identity;
  return { change: patchStatus(world, record, saved, before) };
}

/** Makes the VM the owner of a record that the restore created, or found without an owner and restored. */
export function handOverRecord(world: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  const { record, restore } = world;
  if (record === undefined || isDeleting(record) || isDeleting(vm) || controllerOf(record) !== undefined) return [];
  if (!isOwnedBy(record, restore) && !isRecordRestored(world, record)) return [];
  const { name, namespace, uid, finalizers = [] } = record.metadata;
  const held = hasRecordFinalizer(record) ? finalizers : [...finalizers, RECORD_FINALIZER];
  const body = [
    unchangedOperation(record),
    { op: 'add', path: '/metadata/ownerReferences', value: [vmOwnerReference(vm)] },
    { op: 'add', path: '/metadata/finalizers', value: held },
  ];
  const why = 'the record belongs to the restored VM';
  return [{ do: 'patch', type: TYPE, name: { name, namespace }, uid, patch: { type: 'json', body }, why }];
}

/** Deletes the record that a failed restore created for a VM that was never created. */
export function deleteRecord({ record, restore }: RestoreWorld): Change[] {
  if (record === undefined || isDeleting(record) || !isOwnedBy(record, restore)) return [];
  if (controllerOf(record) !== undefined) return [];
  const { name, namespace, uid } = record.metadata;
  const why = `Deleted VirtualMachineIdentity ${name}: the restore has failed`;
  return [{ do: 'delete', type: TYPE, name: { name, namespace }, uid, why }];
}

function isOwnedBy({ metadata }: VirtualMachineIdentity, { metadata: { uid } }: Stored): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
}

function waitForDeletion({ metadata }: Stored): RecordStep {
  return { wait: `Waiting for the deletion of the identity record ${metadata.name} of an earlier VirtualMachine` };
}

/**
 * Builds the record's spec. A VM with a new uuid gets new MACs; the SMBIOS strings are those of the snapshot in any
 * case.
 */
function buildRecordSpec({ restore }: RestoreWorld, content: ContentSpec, vm: VirtualMachine): IdentitySpec {
  const { virtualMachine: source, virtualMachineIdentity: identity } = content.source;
  const { uuid, serial } = firmwareOf(vm);
  const hasNewUuid = restore.spec.target.name !== source.metadata.name && uuid !== snapshotUuidOf(content).uuid;
  const saved: IdentitySpec = hasNewUuid ? {} : (identity?.spec ?? {});
  const keptSerial = serial || saved.firmware?.serial;
  const { smbios } = identity?.spec ?? {};
  return {
    ...(uuid ? { firmware: { uuid, ...(keptSerial ? { serial: keptSerial } : {}) } } : {}),
    ...(smbios === undefined ? {} : { smbios }),
    ...(saved.interfaces === undefined ? {} : { interfaces: saved.interfaces }),
  };
}

/** `finalizers`: empty while the record belongs to the restore, which may still delete it. */
function createRecord(
  { restore }: RestoreWorld,
  spec: IdentitySpec,
  owner: OwnerReference,
  finalizers: readonly string[] = [],
): Change {
  const { namespace } = restore.metadata;
  const held = finalizers.length === 0 ? {} : { finalizers: [...finalizers] };
  const metadata = { name: restore.spec.target.name, namespace, ...held, ownerReferences: [owner] };
  const object = { apiVersion: apiVersionOf(TYPE), kind: TYPE.kind, metadata, spec };
  const why = `Recorded the identity of the virtual machine from snapshot ${restore.spec.virtualMachineSnapshotName}`;
  return { do: 'create', type: TYPE, object, reason: 'IdentityRecorded', why };
}

function patchSpec(record: Stored<VirtualMachineIdentity>, spec: IdentitySpec): Change {
  const { name, namespace, uid } = record.metadata;
  const body = [unchangedOperation(record), { op: 'add', path: '/spec', value: spec }];
  const why = 'the VM has the identity of the snapshot';
  return { do: 'patch', type: TYPE, name: { name, namespace }, uid, patch: { type: 'json', body }, why };
}

/** `before`: the identity of the VM until now, with its history. */
function patchStatus(
  world: RestoreWorld,
  record: Stored<VirtualMachineIdentity>,
  { status }: SnapshotIdentity,
  before: Pick<VirtualMachineIdentity, 'spec' | 'status'>,
): Change {
  const { name, namespace, uid } = record.metadata;
  const { history: _, stateClaim: __, ...devices } = status ?? {};
  const stateClaim = stateClaimAfter(world, record);
  const next = { ...devices, recorded: record.spec, ...(stateClaim !== undefined && { stateClaim }) };
  const value: IdentityStatus = {
    ...next,
    history: appendHistory(before.status?.history, buildRestoreEntries(world, before, next)),
  };
  const body = [unchangedOperation(record), { op: 'add', path: '/status', value }];
  const target = { type: TYPE, name: { name, namespace }, uid, subresource: 'status' };
  return {
    do: 'patch',
    ...target,
    patch: { type: 'json', body },
    why: 'the VM has the devices of the snapshot',
  };
}

/** Returns at least one entry, even if nothing changed: the restore detects by it that the record is complete. */
function buildRestoreEntries(
  { restore, now }: RestoreWorld,
  { spec, status = {} }: Pick<VirtualMachineIdentity, 'spec' | 'status'>,
  next: IdentityStatus & { readonly recorded: IdentitySpec },
): HistoryEntry[] {
  const [at, cause] = [timestamp(now), { cause: causeOf(restore) }];
  const what = `restored from snapshot ${restore.spec.virtualMachineSnapshotName}`;
  const accounted = buildIdentityState(status.recorded ?? spec, status);
  const changes = diffIdentityStates(accounted, buildIdentityState(next.recorded, next));
  if (changes.length === 0) return [{ at, what, ...cause, changes: [] }];
  return buildHistoryEntries(
    at,
    changes.map((change) => ({ change, cause })),
    () => what,
  );
}

/**
 * Returns the state claim of the target after the restore: the restored one if the snapshot has state, else its own.
 */
function stateClaimAfter({ restore, volumes }: RestoreWorld, { status }: VirtualMachineIdentity): string | undefined {
  const restored = volumes.find(({ claimName }) => isStateClaim(restore, claimName));
  return restored?.claimName ?? status?.stateClaim;
}

/** Reports whether the history has the entry of this restore, which is the last write to the record. */
function isRecordRestored({ restore }: RestoreWorld, { status }: VirtualMachineIdentity): boolean {
  return status?.history?.some(({ cause }) => cause === causeOf(restore)) === true;
}

function causeOf({ metadata }: Stored): string {
  return `VirtualMachineRestore ${metadata.name} (${metadata.uid})`;
}
