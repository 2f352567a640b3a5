/** What is done about one VirtualMachineRestore: one step at a time, each decided from what is there. Pure. */
import { VM_RESTORE_FINALIZER } from '#api/names.ts';
import { isRestoreFinished, VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { firmwareOf, uuidOf } from '#controllers/restore/build-restored-vm.ts';
import {
  awaitClaims,
  handOverClaims,
  hasReplaced,
  leaveClaims,
  makeClaims,
  nameClaims,
  refuseClaims,
} from '#controllers/restore/claims.ts';
import { isWritten, type RestoreWorld } from '#controllers/restore/restore-world.ts';
import { completes, failed, fails, goesOn, progressing, tries } from '#controllers/restore/restore-status.ts';
import { keptState, retireState } from '#controllers/restore/restored-state.ts';
import { dropRecord, handOverRecord, recordAfterVm } from '#controllers/restore/restored-identity.ts';
import { awaitHold, awaitStop, knowTarget, refuseTarget } from '#controllers/restore/target.ts';
import { writeVm } from '#controllers/restore/write-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { isApiError } from '#kube/api-error.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { isStale, textOf } from '#runtime/apply.ts';
import { holdBy, releaseFrom } from '#runtime/finalizer.ts';
import type { EventNote } from '#runtime/events.ts';
import { NOTHING, type Change, type Failure, type Plan } from '#runtime/plan.ts';

export const RENEWED = 'FirmwareUUIDRenewed';

type Rule = (world: RestoreWorld) => Plan | undefined;

/** The first that has something to say says it. */
const rules: readonly Rule[] = [
  release, // A restore under deletion that has changed nothing yet changes nothing any more.
  cleanUp, // A finished one does nothing more, but takes away what it made in vain.
  hold,
  finish, // A target that is written is handed its disks, whatever has become of the snapshot.
  refuseTarget,
  awaitSnapshot,
  knowTarget,
  awaitHold,
  refuseClaims,
  awaitStop,
  nameClaims,
  makeClaims,
  awaitClaims,
  writeVm,
];

export function decideRestore(world: RestoreWorld): Plan {
  for (const rule of rules) {
    const plan = rule(world);
    if (plan !== undefined) return plan;
  }
  return NOTHING;
}

/** What the API finds invalid stays so; everything else is told, and tried again. */
export function concludeRestore(world: RestoreWorld, failures: readonly Failure[]): Plan['status'] {
  const failure = failures.find(({ error }) => !isStale(error));
  if (failure === undefined || isRestoreFinished(world.restore)) return undefined;
  const message = `Cannot ${failure.change.do} ${failure.change.type.kind}: ${textOf(failure.error)}`;
  if (isApiError(failure.error, 'Invalid')) return failed(world, 'Refused', message);
  return progressing(world, { reason: 'WriteFailed', message });
}

function release(world: RestoreWorld): Plan | undefined {
  const { restore } = world;
  if (!isDeleting(restore)) return undefined;
  const why = 'nothing is left to be done for it';
  const change = releaseFrom(VM_RESTORE_FINALIZER, VIRTUAL_MACHINE_RESTORES, restore, why);
  if (change === undefined) return NOTHING;
  if (!isRestoreFinished(restore)) return isWritten(world) || hasReplaced(world) ? undefined : { changes: [change] };
  // What it leaves to the VM would otherwise go with it.
  const left = leftovers(world);
  return { changes: left.length > 0 ? left : [change] };
}

function cleanUp(world: RestoreWorld): Plan | undefined {
  const { restore } = world;
  if (!isRestoreFinished(restore)) return undefined;
  return { changes: leftovers(world) };
}

function leftovers(world: RestoreWorld): Change[] {
  return world.restore.status?.complete === true ? [] : [...leaveClaims(world), ...dropRecord(world)];
}

function hold(world: RestoreWorld): Plan | undefined {
  const change = holdBy(VM_RESTORE_FINALIZER, VIRTUAL_MACHINE_RESTORES, world.restore);
  return change === undefined ? undefined : { changes: [change] };
}

function awaitSnapshot(world: RestoreWorld): Plan | undefined {
  const { restore, snapshot, content } = world;
  const name = `VirtualMachineSnapshot ${restore.spec.virtualMachineSnapshotName}`;
  const reason = 'SnapshotNotReady';
  if (snapshot === undefined) return goesOn(world, { reason, message: `${name} does not exist` });
  if (snapshot.status?.phase === 'Failed') return fails(world, 'SnapshotFailed', `${name} has failed`);
  if (snapshot.status?.readyToUse !== true) return goesOn(world, { reason, message: `${name} is not ready to use` });
  if (content === undefined) return goesOn(world, { reason, message: `the content of ${name} does not exist` });
  if (content.status?.readyToUse === true) return undefined;
  return goesOn(world, { reason, message: `the content of ${name} is not ready to use` });
}

function finish(world: RestoreWorld): Plan | undefined {
  const { restore, vm, content } = world;
  if (vm === undefined || !isWritten(world)) return undefined;
  if (restore.status?.targetUID === undefined) {
    const learned = { targetUID: vm.metadata.uid };
    const message = `Created VirtualMachine ${vm.metadata.name}`;
    return goesOn(world, { reason: 'TargetCreated', message, learned, events: renewal(world) });
  }
  const step = recordAfterVm(world, content?.spec, vm);
  if (step !== undefined && 'wait' in step) return goesOn(world, { reason: 'RecordLeft', message: step.wait });
  if (step !== undefined) return tries([step.change]);
  const changes = [...handOverClaims(world, vm), ...handOverRecord(world, vm)];
  if (changes.length > 0) return tries(changes);
  const retired = retireState(world, vm);
  // In their order.
  return retired.length > 0 ? { changes: retired } : completes(world, keptState(world));
}

/** Nobody gets another uuid without being told, and told why. */
function renewal({ vm, content, uuidHolder, restore }: RestoreWorld): EventNote[] {
  if (vm === undefined || content === undefined) return [];
  const { uuid } = uuidOf(content.spec);
  const now = firmwareOf(vm).uuid;
  const { virtualMachineSnapshotName: snapshot, patches = [] } = restore.spec;
  // Where nobody has it any more, it was renewed for somebody who had it, unless a patch asked for another.
  if (now === uuid || (uuidHolder === undefined && patches.length > 0)) return [];
  const message =
    `VirtualMachine ${vm.metadata.name} has the new firmware uuid ${now ?? ''} and new MAC addresses: ` +
    `${uuidHolder === undefined ? 'another VirtualMachine had' : `${holderOf(uuidHolder, vm)} has`} ` +
    `the uuid ${uuid} of snapshot ${snapshot}`;
  return [{ type: 'Warning', reason: RENEWED, message }];
}

/** Names of other namespaces are not everybody's to know. */
function holderOf(key: string, { metadata }: Stored<VirtualMachine>): string {
  const here = `${metadata.namespace}/`;
  return key.startsWith(here) ? `VirtualMachine ${key.slice(here.length)}` : 'A VirtualMachine in another namespace';
}
