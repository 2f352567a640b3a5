/**
 * The identity record of a restored VM: who it was (spec), and where its devices were (status), as the snapshot has it.
 * A target that is made finds it there at its first start; that of a target that is there is set back after its spec, so
 * that a restore that is given up has changed nothing. Snapshots without a record leave the target's as it is. Pure.
 */
import { identityChanges, identityState } from '#api/identity-changes.ts';
import { appendHistory, historyEntries } from '#api/identity-history.ts';
import {
  type HistoryEntry,
  type IdentitySpec,
  type IdentityStatus,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import { isHeld, isVanishing } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import type { ContentSpec, SnapshotIdentity } from '#api/virtual-machine-snapshot-content/kind.ts';
import { ownedByRestore } from '#controllers/restore/build-claim.ts';
import { firmwareOf, uuidOf } from '#controllers/restore/build-restored-vm.ts';
import { isStateClaim } from '#controllers/restore/restored-state.ts';
import { type RestoreWorld, sameState } from '#controllers/restore/restore-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { apiVersionOf, controllerOf, isDeleting, type OwnerReference, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change } from '#runtime/plan.ts';

type Step = { readonly change: Change } | { readonly wait: string };

const TYPE = VIRTUAL_MACHINE_IDENTITIES;

/** The next write before the VM is made as `made`; undefined when the record is as it should be. */
export function recordBeforeVm(world: RestoreWorld, content: ContentSpec, made: VirtualMachine): Step | undefined {
  const { record, restore } = world;
  const { virtualMachineIdentity: identity } = content.source;
  if (identity === undefined) return undefined;
  const spec = specFor(world, content, made);
  // The VM is not there: whoever controls a record of its name is an earlier one.
  if (record !== undefined && (isDeleting(record) || controllerOf(record) !== undefined)) return leftOver(record);
  if (record === undefined) return { change: create(world, spec, ownedByRestore(restore, { controller: false })) };
  if (!deepEqual(record.spec, spec)) return { change: patchSpec(record, spec) };
  if (isRestored(world, record)) return undefined;
  return { change: patchStatus(world, record, identity, identity) };
}

/** The next write after the VM was written. */
export function recordAfterVm(
  world: RestoreWorld,
  content: ContentSpec | undefined,
  vm: Stored<VirtualMachine>,
): Step | undefined {
  const { record } = world;
  const identity = content?.source.virtualMachineIdentity;
  if (content === undefined || identity === undefined || isDeleting(vm)) return undefined;
  const spec = specFor(world, content, vm);
  if (record === undefined) return { change: create(world, spec, ownedByVm(vm), [RECORD_FINALIZER]) };
  const owner = controllerOf(record);
  const isOwned = owner?.uid === vm.metadata.uid;
  if (isOwned ? isVanishing(record) : isDeleting(record) || owner !== undefined) return leftOver(record);
  // Its spec is the VM controller's again as soon as this entry is in.
  if (isRestored(world, record)) return undefined;
  if (!deepEqual(record.spec, spec)) return { change: patchSpec(record, spec) };
  // What happened to this VM since the snapshot has happened.
  const before = record.status?.history === undefined ? identity : record;
  // A snapshot from before the first start has no devices: the VM keeps those that it has.
  const saved = identity.status?.devices === undefined ? { ...identity, status: record.status } : identity;
  return { change: patchStatus(world, record, saved, before) };
}

/** The record that was made for a VM, or found without an owner and restored, becomes the VM's own and goes with it. */
export function handOverRecord(world: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  const { record, restore } = world;
  if (record === undefined || isDeleting(record) || isDeleting(vm) || controllerOf(record) !== undefined) return [];
  if (!isOwnedBy(record, restore) && !isRestored(world, record)) return [];
  const { name, namespace, uid, finalizers = [] } = record.metadata;
  const held = isHeld(record) ? finalizers : [...finalizers, RECORD_FINALIZER];
  const body = [
    sameState(record),
    { op: 'add', path: '/metadata/ownerReferences', value: [ownedByVm(vm)] },
    { op: 'add', path: '/metadata/finalizers', value: held },
  ];
  const why = 'the record goes with the restored VM';
  return [{ do: 'patch', type: TYPE, name: { name, namespace }, uid, patch: { type: 'json', body }, why }];
}

/** What a restore that failed made for a VM that never came. */
export function dropRecord({ record, restore }: RestoreWorld): Change[] {
  if (record === undefined || isDeleting(record) || !isOwnedBy(record, restore)) return [];
  if (controllerOf(record) !== undefined) return [];
  const { name, namespace, uid } = record.metadata;
  return [{ do: 'delete', type: TYPE, name: { name, namespace }, uid, why: 'the restore has failed' }];
}

function isOwnedBy({ metadata }: VirtualMachineIdentity, { metadata: { uid } }: Stored): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
}

function leftOver({ metadata }: Stored): Step {
  return { wait: `Waiting for the identity record ${metadata.name} of an earlier VirtualMachine to go` };
}

/** Who gets another uuid than the snapshot has gets other MACs, too; of the same make it is in any case. */
function specFor({ restore }: RestoreWorld, content: ContentSpec, vm: VirtualMachine): IdentitySpec {
  const { virtualMachine: source, virtualMachineIdentity: identity } = content.source;
  const { uuid, serial } = firmwareOf(vm);
  const renewed = restore.spec.target.name !== source.metadata.name && uuid !== uuidOf(content).uuid;
  const known: IdentitySpec = renewed ? {} : (identity?.spec ?? {});
  const kept = serial || known.firmware?.serial;
  const { smbios } = identity?.spec ?? {};
  return {
    ...(uuid ? { firmware: { uuid, ...(kept ? { serial: kept } : {}) } } : {}),
    ...(smbios === undefined ? {} : { smbios }),
    ...(known.interfaces === undefined ? {} : { interfaces: known.interfaces }),
  };
}

/** `finalizers`: none while the record belongs to the restore, which may still drop it. */
function create(
  { restore }: RestoreWorld,
  spec: IdentitySpec,
  owner: OwnerReference,
  finalizers: readonly string[] = [],
): Change {
  const { namespace } = restore.metadata;
  const held = finalizers.length === 0 ? {} : { finalizers: [...finalizers] };
  const metadata = { name: restore.spec.target.name, namespace, ...held, ownerReferences: [owner] };
  const object = { apiVersion: apiVersionOf(TYPE), kind: TYPE.kind, metadata, spec };
  const why = `Recorded the identity of the virtual machine as snapshot ${restore.spec.virtualMachineSnapshotName} has it`;
  return { do: 'create', type: TYPE, object, reason: 'IdentityRecorded', why };
}

function patchSpec(record: Stored<VirtualMachineIdentity>, spec: IdentitySpec): Change {
  const { name, namespace, uid } = record.metadata;
  const body = [sameState(record), { op: 'add', path: '/spec', value: spec }];
  const why = 'the VM is who it was in the snapshot';
  return { do: 'patch', type: TYPE, name: { name, namespace }, uid, patch: { type: 'json', body }, why };
}

/** `before`: what the VM was until now, and the history that led there. */
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
    history: appendHistory(before.status?.history, entriesOf(world, before, next)),
  };
  const body = [sameState(record), { op: 'add', path: '/status', value }];
  const target = { type: TYPE, name: { name, namespace }, uid, subresource: 'status' };
  return {
    do: 'patch',
    ...target,
    patch: { type: 'json', body },
    why: 'its devices are where they were in the snapshot',
  };
}

/** An entry also where the restore changed nothing: by it the restore knows that it is done. */
function entriesOf(
  { restore, now }: RestoreWorld,
  { spec, status = {} }: Pick<VirtualMachineIdentity, 'spec' | 'status'>,
  next: IdentityStatus & { readonly recorded: IdentitySpec },
): HistoryEntry[] {
  const [at, cause] = [timestamp(now), { cause: causeOf(restore) }];
  const what = `restored from snapshot ${restore.spec.virtualMachineSnapshotName}`;
  const accounted = identityState(status.recorded ?? spec, status);
  const changes = identityChanges(accounted, identityState(next.recorded, next));
  if (changes.length === 0) return [{ at, what, ...cause, changes: [] }];
  return historyEntries(
    at,
    changes.map((change) => ({ change, cause })),
    () => what,
  );
}

/** Snapshots hold the state in a claim of their own; the target has the one that was made from it, or keeps its own. */
function stateClaimAfter({ restore, volumes }: RestoreWorld, { status }: VirtualMachineIdentity): string | undefined {
  const restored = volumes.find(({ claimName }) => isStateClaim(restore, claimName));
  return restored?.claimName ?? status?.stateClaim;
}

/** The entry in the history is the last write: who finds it has nothing left to do. */
function isRestored({ restore }: RestoreWorld, { status }: VirtualMachineIdentity): boolean {
  return status?.history?.some(({ cause }) => cause === causeOf(restore)) === true;
}

function causeOf({ metadata }: Stored): string {
  return `VirtualMachineRestore ${metadata.name} (${metadata.uid})`;
}
