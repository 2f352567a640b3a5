/** Decides the next step for one VM. Pure. */
import { templateSpec, VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { importedDevicesOf } from '#api/devices/imported-devices.ts';
import { adoptInstance } from '#controllers/vm/adopt-instance.ts';
import { releaseInstance, removeVm, stopInstance } from '#controllers/vm/delete.ts';
import { claimDeletionEvents } from '#controllers/vm/deleted-claims.ts';
import { firmwareMismatchEvents } from '#controllers/vm/firmware-mismatch.ts';
import { planHotplug, hotplugFailure } from '#controllers/vm/hotplug/hotplug.ts';
import { addRecordFinalizer, releaseRecord } from '#controllers/vm/identity/record-finalizer.ts';
import { adoptRecord, ownRecord, recordAddresses, recordIdentity } from '#controllers/vm/identity/identity.ts';
import { isRebuildable, lossEvents, RECORD_LOST } from '#controllers/vm/identity/lost-record.ts';
import { firmwareFailure, missingFirmware, patchVm } from '#controllers/vm/identity/persist-firmware.ts';
import { missingNetworksEvents } from '#controllers/vm/missing-networks.ts';
import { protectionEvents } from '#controllers/vm/protection.ts';
import { runActionOf } from '#controllers/vm/start/run-strategy.ts';
import { prepareVm, planStart } from '#controllers/vm/start/start.ts';
import { FAILED_INSTANCE_CREATE, findStartRefusal } from '#controllers/vm/start/start-refusal.ts';
import { vmStatusOf } from '#controllers/vm/vm-status.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { restoredFrom } from '#api/virtual-machine-identity/restored-vm.ts';
import { findCondition } from '#kube/conditions.ts';
import { errorMessage } from '#lib/error-message.ts';
import { isStale } from '#runtime/apply.ts';
import type { EventNote } from '#runtime/events.ts';
import type { FailedChange, Plan } from '#runtime/plan.ts';
import { controllerUid, isDeleting } from '#kube/meta.ts';

type Rule = (world: VmWorld) => Plan | undefined;

/**
 * The rules in order; the first that returns a plan wins. A plan contains the status, except if its own writes would
 * make that status obsolete.
 */
const rules: readonly Rule[] = [
  releaseDeletedRecord, // Precedes removeDeleted: a VM that is deleted in the foreground waits for its record.
  releaseStoppingInstance, // An instance under deletion is released in any case.
  removeDeleted, // A VM under deletion stops its instance and does nothing else.
  reportLoss, // A lost or rebuilt record is reported before the VM acts on it.
  adoptOrphan, // An orphaned instance of an earlier VM must belong to this VM before any decision about it.
  startHalted, // A start request changes a halted VM to the run strategy Always.
  stopUnwanted, // A finished or unwanted instance must be deleted before a new one can have its name.
  rebuildRecord, // A lost record is rebuilt while the instance or a snapshot still has its content.
  addMissingFinalizer, // Records of older versions get the finalizer that keeps them until their VM is deleted.
  readoptRecord, // A record whose owner is gone is adopted before the garbage collector takes it.
  persistFirmware, // A VM that was stored without a firmware uuid gets it, even if it does not start now.
  completeRecord, // The record of a restored copy gets the uuid and MACs of the copy before the first start.
  recordImport, // An imported VM gets its record before the first start, so that kubectl get vmid shows it.
  recordNewAddresses, // The record has the addresses that the VM got, so that they come back if they are lost.
  planHotplug, // Changes of disks and interfaces in the template are applied to the running guest if possible.
  startWanted,
];

/** Returns the plan. Events about changes that the status shows accompany that status. */
export function decideVm(world: VmWorld): Plan {
  const plan = decide(world);
  if (plan.status === undefined) return plan;
  const events = [
    ...protectionEvents(world),
    ...lossEvents(world),
    ...claimDeletionEvents(world),
    ...firmwareMismatchEvents(world),
    ...missingNetworksEvents(world),
  ];
  return { ...plan, events: [...(plan.events ?? []), ...events] };
}

function decide(world: VmWorld): Plan {
  for (const rule of rules) {
    const plan = rule(world);
    if (plan !== undefined) return plan;
  }
  const action = runActionOf(world);
  const requeue = action.kind === 'wait' ? { requeueAfterMs: action.ms } : {};
  return { changes: [], status: vmStatusOf(world), events: eventsOf(world), ...requeue };
}

/** Returns a Warning Event if the reason not to start is new. lossEvents reports a lost record. */
function eventsOf(world: VmWorld): EventNote[] {
  const refusal = findStartRefusal(world);
  if (refusal?.reason === RECORD_LOST) return [];
  const reported = findCondition(world.vm.status?.conditions, 'Failure')?.message;
  return refusal === undefined || refusal.message === reported ? [] : [{ type: 'Warning', ...refusal }];
}

/** Returns the status after a failed change, or undefined: without failures, the next reconcile computes the status. */
export function concludeVm(world: VmWorld, failures: readonly FailedChange[]): Plan['status'] {
  const failure = failures.find(({ error }) => !isStale(error));
  if (failure === undefined) return undefined;
  const cause = errorMessage(failure.error);
  const start = { reason: FAILED_INSTANCE_CREATE, message: `Failure while starting VMI: ${cause}` };
  // deleteProtected keeps its old value: a change is reported with an Event, by the next reconcile.
  const { deleteProtected } = world.vm.status ?? {};
  const vmFailure = firmwareFailure(failure.change, cause) ?? hotplugFailure(world, cause) ?? start;
  return { ...vmStatusOf(world, vmFailure), deleteProtected };
}

function releaseStoppingInstance(world: VmWorld): Plan | undefined {
  const change = releaseInstance(world.vmi) ?? releaseInstance(world.foreignVmi);
  return change === undefined ? undefined : { changes: [change], status: vmStatusOf(world) };
}

function removeDeleted(world: VmWorld): Plan | undefined {
  if (!isDeleting(world.vm)) return undefined;
  const change = removeVm(world);
  if (change === undefined) return { changes: [], status: vmStatusOf(world) };
  // The patch removes the finalizer. The VM may be gone afterwards, so its status is not written.
  return change.do === 'patch' ? { changes: [change] } : { changes: [change], status: vmStatusOf(world) };
}

function adoptOrphan(world: VmWorld): Plan | undefined {
  const change = adoptInstance(world);
  // From then on the VM has an instance, so it needs its finalizer, as after a start.
  return change === undefined ? undefined : { changes: [...prepareVm(world), change] };
}

function startHalted(world: VmWorld): Plan | undefined {
  if (runActionOf(world).kind !== 'setAlways') return undefined;
  const { metadata, spec } = world.vm;
  const { name, namespace, uid, resourceVersion } = metadata;
  const run = !spec.runStrategy ? { running: true } : { runStrategy: 'Always' };
  const patch = { type: 'merge', body: { metadata: { resourceVersion }, spec: run } } as const;
  const why = 'a start of the halted VM was requested';
  return { changes: [{ do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, why }] };
}

/** Writes the status before the deletion: how the instance ended must remain known after it is gone. */
function stopUnwanted(world: VmWorld): Plan | undefined {
  if (world.vmi === undefined || runActionOf(world).kind !== 'stop') return undefined;
  return { changes: [stopInstance(world.vmi)], status: vmStatusOf(world) };
}

function releaseDeletedRecord({ identity, recordIsReleasable }: VmWorld): Plan | undefined {
  if (identity === undefined || recordIsReleasable !== true) return undefined;
  const change = releaseRecord(identity);
  return change === undefined ? undefined : { changes: [change] };
}

function rebuildRecord(world: VmWorld): Plan | undefined {
  if (world.identity !== undefined || !isRebuildable(world)) return undefined;
  return { changes: recordIdentity(world), status: vmStatusOf(world) };
}

function addMissingFinalizer(world: VmWorld): Plan | undefined {
  const record = ownRecord(world);
  const changes = record === undefined ? [] : addRecordFinalizer(world.vm, record);
  return changes.length === 0 ? undefined : { changes, status: vmStatusOf(world) };
}

function reportLoss(world: VmWorld): Plan | undefined {
  return lossEvents(world).length > 0 ? { changes: [], status: vmStatusOf(world) } : undefined;
}

/** Does nothing while a snapshot or restore holds the VM: it may be about to write the record itself. */
function readoptRecord(world: VmWorld): Plan | undefined {
  const isDue = world.vmi !== undefined || restoredFrom(world.vm) !== undefined;
  if (!isDue || world.lock !== undefined) return undefined;
  const changes = adoptRecord(world);
  return changes.length === 0 ? undefined : { changes, status: vmStatusOf(world) };
}

/** Does nothing if the VM can start: prepareVm then writes the firmware. */
function persistFirmware(world: VmWorld): Plan | undefined {
  const firmware = missingFirmware(world);
  if (firmware === undefined || mayStart(world)) return undefined;
  // concludeVm reports a failure in the status; on success the next reconcile computes the full status.
  return { changes: [patchVm(world.vm, { firmware }, 'the template has no firmware uuid')], continueOnError: true };
}

/**
 * A restore creates the record of a copy without the uuid and MACs of the original, before the copy has its own. Does
 * nothing if the VM can start: planStart then writes the record.
 */
function completeRecord(world: VmWorld): Plan | undefined {
  const { vm, vmi, lock } = world;
  const record = ownRecord(world);
  if (record === undefined || vmi !== undefined || lock !== undefined || mayStart(world)) return undefined;
  const isIncomplete = !record.spec.firmware?.uuid && templateSpec(vm).domain.firmware?.uuid;
  if (!isIncomplete || controllerUid(record) !== vm.metadata.uid) return undefined;
  return { changes: recordIdentity(world), status: vmStatusOf(world) };
}

/** Creates the record of an imported VM, to which controllers/device-map adds the devices of the import. */
function recordImport(world: VmWorld): Plan | undefined {
  const { vm, vmi, lock, identity } = world;
  if (identity !== undefined || vmi !== undefined || lock !== undefined || mayStart(world)) return undefined;
  const imported = importedDevicesOf(vm);
  const isKnown = imported !== undefined && !('fault' in imported) && templateSpec(vm).domain.firmware?.uuid;
  return isKnown ? { changes: recordIdentity(world), status: vmStatusOf(world) } : undefined;
}

function recordNewAddresses(world: VmWorld): Plan | undefined {
  const changes = world.lock === undefined ? recordAddresses(world) : [];
  return changes.length === 0 ? undefined : { changes, status: vmStatusOf(world) };
}

function startWanted(world: VmWorld): Plan | undefined {
  return mayStart(world) ? planStart(world) : undefined;
}

function mayStart(world: VmWorld): boolean {
  return runActionOf(world).kind === 'start' && findStartRefusal(world) === undefined;
}
