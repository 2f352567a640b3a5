/** Decides the next step of one VirtualMachineRestore from the objects as they are. Pure. */
import { VM_RESTORE_FINALIZER } from '#api/names.ts';
import { isRestoreFinished, VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { firmwareOf, snapshotUuidOf } from '#controllers/restore/build-restored-vm.ts';
import {
  awaitClaims,
  beginReplacing,
  claimsOwnedEvents,
  handOverClaims,
  hasReplaced,
  removeClaims,
  createClaims,
  nameClaims,
  refuseClaims,
} from '#controllers/restore/claims.ts';
import { holdSnapshots, releaseCopies } from '#controllers/restore/needed-snapshots.ts';
import { isTargetWritten, type RestoreWorld } from '#controllers/restore/restore-world.ts';
import {
  completeRestore,
  failedStatus,
  failRestore,
  continueRestore,
  progressStatus,
  tryChanges,
} from '#controllers/restore/restore-status.ts';
import { stateCopiedEvents, stateKeptEvents, retireOldState } from '#controllers/restore/restored-state.ts';
import { deleteRecord, handOverRecord, restoreRecordAfterVm } from '#controllers/restore/restored-identity.ts';
import { awaitHold, awaitStop, recordTarget, refuseTarget } from '#controllers/restore/target.ts';
import { writeVm } from '#controllers/restore/write-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { isApiError } from '#kube/api-error.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';
import { isStale } from '#runtime/apply.ts';
import { requireFinalizer, releaseFinalizer } from '#runtime/finalizer.ts';
import type { EventNote } from '#runtime/events.ts';
import { EMPTY_PLAN, type Change, type FailedChange, type Plan } from '#runtime/plan.ts';

export const UUID_RENEWED_REASON = 'FirmwareUUIDRenewed';

type Rule = (world: RestoreWorld) => Plan | undefined;

/** The first rule that returns a plan decides. */
const rules: readonly Rule[] = [
  releaseRestore, // A restore under deletion that has not changed the target yet is not continued.
  cleanUp, // A finished restore only removes the objects that a failed one has created.
  holdRestore,
  finishRestore, // A target that is written gets its disks, even if the snapshot does not exist any more.
  refuseTarget,
  awaitSnapshot,
  recordTarget,
  awaitHold,
  refuseClaims,
  awaitStop,
  nameClaims,
  holdSnapshots, // From here on, either the old disks or the snapshots exist.
  beginReplacing,
  createClaims,
  awaitClaims,
  releaseCopies, // The new disks have their data.
  writeVm,
];

export function decideRestore(world: RestoreWorld): Plan {
  for (const rule of rules) {
    const plan = rule(world);
    if (plan !== undefined) return plan;
  }
  return EMPTY_PLAN;
}

/**
 * Reports a failed write. An invalid object fails the restore; the controller retries after all other errors, and also if
 * it has already deleted the claim for which it cannot create another one.
 */
export function concludeRestore(world: RestoreWorld, failures: readonly FailedChange[]): Plan['status'] {
  const failure = failures.find(({ error }) => !isStale(error));
  if (failure === undefined || isRestoreFinished(world.restore)) return undefined;
  const message = `Cannot ${failure.change.do} ${failure.change.type.kind}: ${errorMessage(failure.error)}`;
  const isMissingDisk = failure.change.type === PERSISTENT_VOLUME_CLAIMS && hasReplaced(world);
  if (isApiError(failure.error, 'Invalid') && !isMissingDisk) return failedStatus(world, 'Refused', message);
  return progressStatus(world, { reason: 'WriteFailed', message });
}

function releaseRestore(world: RestoreWorld): Plan | undefined {
  const { restore } = world;
  if (!isDeleting(restore)) return undefined;
  const why = 'the restore is finished or was cancelled';
  const change = releaseFinalizer(VM_RESTORE_FINALIZER, VIRTUAL_MACHINE_RESTORES, restore, why);
  if (change === undefined) return EMPTY_PLAN;
  if (!isRestoreFinished(restore))
    return isTargetWritten(world) || hasReplaced(world) ? undefined : { changes: [change] };
  // Claims that stay with the VM must be handed over first: otherwise they are deleted with the restore.
  const changes = removeLeftovers(world);
  return { changes: changes.length > 0 ? changes : [change] };
}

function cleanUp(world: RestoreWorld): Plan | undefined {
  const { restore } = world;
  if (!isRestoreFinished(restore)) return undefined;
  return { changes: removeLeftovers(world) };
}

function removeLeftovers(world: RestoreWorld): Change[] {
  return world.restore.status?.complete === true ? [] : [...removeClaims(world), ...deleteRecord(world)];
}

function holdRestore(world: RestoreWorld): Plan | undefined {
  const change = requireFinalizer(VM_RESTORE_FINALIZER, VIRTUAL_MACHINE_RESTORES, world.restore);
  return change === undefined ? undefined : { changes: [change] };
}

function awaitSnapshot(world: RestoreWorld): Plan | undefined {
  const { restore, snapshot, content } = world;
  const name = `VirtualMachineSnapshot ${restore.spec.virtualMachineSnapshotName}`;
  const reason = 'SnapshotNotReady';
  if (snapshot === undefined) return continueRestore(world, { reason, message: `${name} does not exist` });
  if (snapshot.status?.phase === 'Failed') return failRestore(world, 'SnapshotFailed', `${name} has failed`);
  if (snapshot.status?.readyToUse !== true)
    return continueRestore(world, { reason, message: `${name} is not ready to use` });
  if (content === undefined)
    return continueRestore(world, { reason, message: `the content of ${name} does not exist` });
  if (content.status?.readyToUse === true) return undefined;
  return continueRestore(world, { reason, message: `the content of ${name} is not ready to use` });
}

function finishRestore(world: RestoreWorld): Plan | undefined {
  const { restore, vm, content } = world;
  if (vm === undefined || !isTargetWritten(world)) return undefined;
  if (restore.status?.targetUID === undefined) {
    const newStatus = { targetUID: vm.metadata.uid };
    const message = `Created VirtualMachine ${vm.metadata.name}`;
    return continueRestore(world, {
      reason: 'TargetCreated',
      message,
      newStatus,
      events: uuidRenewedEvents(world),
    });
  }
  const step = restoreRecordAfterVm(world, content?.spec, vm);
  if (step !== undefined && 'wait' in step) return continueRestore(world, { reason: 'RecordLeft', message: step.wait });
  if (step !== undefined) return tryChanges([step.change]);
  const changes = [...handOverClaims(world, vm), ...handOverRecord(world, vm)];
  if (changes.length > 0) return tryChanges(changes);
  const retired = retireOldState(world, vm);
  // Without continueOnError: the marks must be removed before the claim is deleted.
  if (retired.length > 0) return { changes: retired };
  const events = [...stateKeptEvents(world), ...stateCopiedEvents(world), ...claimsOwnedEvents(world)];
  return completeRestore(world, events);
}

/** Returns the Event for a VM that got a new uuid, with the reason. */
function uuidRenewedEvents({ vm, content, uuidHolder, restore }: RestoreWorld): EventNote[] {
  if (vm === undefined || content === undefined) return [];
  const { uuid } = snapshotUuidOf(content.spec);
  const current = firmwareOf(vm).uuid;
  const { virtualMachineSnapshotName: snapshot, patches = [] } = restore.spec;
  // If no VM has the uuid now, another VM had it when this one was created, unless a patch set another uuid.
  if (current === uuid || (uuidHolder === undefined && patches.length > 0)) return [];
  const message =
    `VirtualMachine ${vm.metadata.name} has the new firmware uuid ${current ?? ''} and new MAC addresses: ` +
    `${uuidHolder === undefined ? 'another VirtualMachine had' : `${describeHolder(uuidHolder, vm)} has`} ` +
    `the uuid ${uuid} of snapshot ${snapshot}`;
  return [{ type: 'Warning', reason: UUID_RENEWED_REASON, message }];
}

/** Describes the VM that has the uuid. Does not reveal names of other namespaces. */
function describeHolder(key: string, { metadata }: Stored<VirtualMachine>): string {
  const prefix = `${metadata.namespace}/`;
  return key.startsWith(prefix)
    ? `VirtualMachine ${key.slice(prefix.length)}`
    : 'a VirtualMachine in another namespace';
}
