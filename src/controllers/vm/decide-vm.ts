/** What is done about one VM. Pure. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { adoption } from '#controllers/vm/adopt.ts';
import { releaseInstance, removal, stop } from '#controllers/vm/delete.ts';
import { hotplug, hotplugTrouble } from '#controllers/vm/hotplug.ts';
import { holdRecord, releaseRecord } from '#controllers/vm/hold-record.ts';
import { adoptRecord, ownRecord, recordIdentity } from '#controllers/vm/identity.ts';
import { isRebuildable, lossNews, RECORD_LOST } from '#controllers/vm/lost-record.ts';
import { firmwareTrouble, missingFirmware, patchVm } from '#controllers/vm/persist-firmware.ts';
import { protectionNews } from '#controllers/vm/protection.ts';
import { wantOf } from '#controllers/vm/run-strategy.ts';
import { prepareVm, start } from '#controllers/vm/start.ts';
import { FAILED_CREATE, troubleOf } from '#controllers/vm/trouble.ts';
import { vmStatusOf } from '#controllers/vm/vm-status.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { restoredFrom } from '#api/virtual-machine-identity/restored-vm.ts';
import { findCondition } from '#kube/conditions.ts';
import { isStale, textOf } from '#runtime/apply.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Failure, Plan } from '#runtime/plan.ts';
import { isDeleting } from '#kube/meta.ts';

type Rule = (world: VmWorld) => Plan | undefined;

/** The first that has something to do does it; the status is told by all but those whose own writes would outrun it. */
const rules: readonly Rule[] = [
  releaseDeletedRecord, // A VM that is deleted in the foreground waits for its record, so this comes before its own end.
  releaseStopping, // The end of an instance is seen once, whatever else is going on.
  removeDeleted, // A VM under deletion stops its instance and does nothing else.
  reportRecord, // The VM says that its record was lost or rebuilt before anything else follows from it.
  adoptOrphan, // What an earlier VM of the name left running is the VM's own before anything is decided about it.
  wakeHalted, // A paused start of a halted VM makes it one that is always to run.
  stopUnwanted, // An instance that is finished, or not wanted, has to be gone before a new one may take its name.
  rebuildRecord, // A record that is lost is made again while the instance or a snapshot knows what it held.
  holdOwnRecord, // A record of an older version gets the finalizer that keeps it until its VM is gone.
  keepRecord, // A record without its VM becomes the record of this VM before the garbage collector takes it.
  persistFirmware, // A VM of old gets the uuid that it has always had, also when it is not about to start.
  hotplug, // What the template says of disks and interfaces reaches the guest that runs, as far as that can be.
  startWanted,
];

/** Events about protection and about the record are recorded together with the status that shows the change. */
export function decideVm(world: VmWorld): Plan {
  const plan = decide(world);
  if (plan.status === undefined) return plan;
  return { ...plan, events: [...(plan.events ?? []), ...protectionNews(world), ...lossNews(world)] };
}

function decide(world: VmWorld): Plan {
  for (const rule of rules) {
    const plan = rule(world);
    if (plan !== undefined) return plan;
  }
  const want = wantOf(world);
  const requeue = want.to === 'wait' ? { requeueAfterMs: want.ms } : {};
  return { changes: [], status: vmStatusOf(world), events: eventsOf(world), ...requeue };
}

/** Returns the trouble as an Event when it is new. That the record is lost is reported by lossNews. */
function eventsOf(world: VmWorld): EventNote[] {
  const trouble = troubleOf(world);
  if (trouble?.reason === RECORD_LOST) return [];
  const told = findCondition(world.vm.status?.conditions, 'Failure')?.message;
  return trouble === undefined || trouble.message === told ? [] : [{ type: 'Warning', ...trouble }];
}

/** What could not be made is told in the status; what could is told when it is seen. */
export function concludeVm(world: VmWorld, failures: readonly Failure[]): Plan['status'] {
  const failure = failures.find(({ error }) => !isStale(error));
  if (failure === undefined) return undefined;
  const cause = textOf(failure.error);
  const start = { reason: FAILED_CREATE, message: `Failure while starting VMI: ${cause}` };
  // Nothing is told here: that is left to the next look.
  const { deleteProtected } = world.vm.status ?? {};
  const trouble = firmwareTrouble(failure.change, cause) ?? hotplugTrouble(world, cause) ?? start;
  return { ...vmStatusOf(world, trouble), deleteProtected };
}

function releaseStopping(world: VmWorld): Plan | undefined {
  const change = releaseInstance(world.vmi) ?? releaseInstance(world.stranger);
  return change === undefined ? undefined : { changes: [change], status: vmStatusOf(world) };
}

function removeDeleted(world: VmWorld): Plan | undefined {
  if (!isDeleting(world.vm)) return undefined;
  const change = removal(world);
  if (change === undefined) return { changes: [], status: vmStatusOf(world) };
  // With the last finalizer goes the VM: nobody would read its status.
  return change.do === 'patch' ? { changes: [change] } : { changes: [change], status: vmStatusOf(world) };
}

function adoptOrphan(world: VmWorld): Plan | undefined {
  const change = adoption(world);
  // It has an instance from then on, and is held as after a start.
  return change === undefined ? undefined : { changes: [...prepareVm(world), change] };
}

function wakeHalted(world: VmWorld): Plan | undefined {
  if (wantOf(world).to !== 'wake') return undefined;
  const { metadata, spec } = world.vm;
  const { name, namespace, uid, resourceVersion } = metadata;
  const run = !spec.runStrategy ? { running: true } : { runStrategy: 'Always' };
  const patch = { type: 'merge', body: { metadata: { resourceVersion }, spec: run } } as const;
  const why = 'a start was asked for';
  return { changes: [{ do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, why }] };
}

/** The status goes first: what it says of the instance's end must last longer than the instance. */
function stopUnwanted(world: VmWorld): Plan | undefined {
  if (world.vmi === undefined || wantOf(world).to !== 'stop') return undefined;
  return { changes: [stop(world.vmi)], status: vmStatusOf(world) };
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

function holdOwnRecord(world: VmWorld): Plan | undefined {
  const record = ownRecord(world);
  const changes = record === undefined ? [] : holdRecord(world.vm, record);
  return changes.length === 0 ? undefined : { changes, status: vmStatusOf(world) };
}

function reportRecord(world: VmWorld): Plan | undefined {
  return lossNews(world).length > 0 ? { changes: [], status: vmStatusOf(world) } : undefined;
}

/** A VM that is held by a snapshot or restore waits: the holder may be about to hand it over. */
function keepRecord(world: VmWorld): Plan | undefined {
  const isDue = world.vmi !== undefined || restoredFrom(world.vm) !== undefined;
  if (!isDue || world.lock !== undefined) return undefined;
  const changes = adoptRecord(world);
  return changes.length === 0 ? undefined : { changes, status: vmStatusOf(world) };
}

/** A start does it with its own first write. */
function persistFirmware(world: VmWorld): Plan | undefined {
  const firmware = missingFirmware(world);
  if (firmware === undefined || mayStart(world)) return undefined;
  // Told in the status where it fails (concludeVm); otherwise the next look tells all.
  return { changes: [patchVm(world.vm, { firmware }, 'it lacks its firmware uuid')], goOn: true };
}

function startWanted(world: VmWorld): Plan | undefined {
  return mayStart(world) ? start(world) : undefined;
}

function mayStart(world: VmWorld): boolean {
  return wantOf(world).to === 'start' && troubleOf(world) === undefined;
}
