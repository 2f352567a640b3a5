/**
 * Plans a start, as writes that must be durable in this order: the VM has our finalizer, machine type and firmware
 * uuid; its identity, with the devices of an import, is recorded; the instance is created. After an interruption the
 * next reconcile continues at the first missing write.
 */
import { STARTED_ANNOTATION, VM_FINALIZER } from '#api/names.ts';
import { restoredFrom, startedMark } from '#api/virtual-machine-identity/restored-vm.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { buildVmi } from '#controllers/vm/start/build-vmi.ts';
import { missingFirmware, patchVm } from '#controllers/vm/identity/persist-firmware.ts';
import { resolveIdentity, knownIdentity, ownRecord, recordIdentity } from '#controllers/vm/identity/identity.ts';
import { awaitsImport } from '#controllers/vm/identity/imported-devices.ts';
import { awaitsRebuild } from '#controllers/vm/identity/lost-record.ts';
import { isPausedStartNext } from '#controllers/vm/start/state-change-requests.ts';
import { vmStatusOf } from '#controllers/vm/vm-status.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { templateSpec } from '#api/virtual-machine/kind.ts';
import type { Change, Plan } from '#runtime/plan.ts';

/** Returns the next writes for a VM that is to start and may. */
export function planStart(world: VmWorld): Plan {
  const preparations = [...prepareVm(world), ...recordIdentity(world)];
  const isWaiting = awaitsImport(world) || awaitsRebuild(world);
  if (preparations.length === 0 && isWaiting) return { changes: [], status: vmStatusOf(world) };
  // concludeVm reports a failure in the status.
  return { changes: preparations.length > 0 ? preparations : [createInstance(world)], continueOnError: true };
}

function createInstance(world: VmWorld): Change {
  const { vm, configuration } = world;
  const identity = resolveIdentity(vm, knownIdentity(world), world);
  const object = buildVmi(vm, identity, configuration, { paused: isPausedStartNext(world), network: world.network });
  const why = `Started the virtual machine by creating the new virtual machine instance ${vm.metadata.name}`;
  return { do: 'create', type: VIRTUAL_MACHINE_INSTANCES, object, why };
}

/**
 * Returns the write that adds a missing finalizer, mark of a started VM, machine type and firmware uuid; none if the VM has
 * all of them.
 */
export function prepareVm(world: VmWorld): Change[] {
  const { vm, configuration } = world;
  const { finalizers = [] } = vm.metadata;
  const held = finalizers.includes(VM_FINALIZER);
  const type = templateSpec(vm).domain.machine?.type ? undefined : configuration.defaultMachineType;
  const firmware = missingFirmware(world);
  const mark = missingMark(world);
  if (held && mark === undefined && type === undefined && firmware === undefined) return [];
  const metadata = {
    ...(held ? {} : { finalizers: [...finalizers, VM_FINALIZER] }),
    ...(mark === undefined ? {} : { annotations: { [STARTED_ANNOTATION]: mark } }),
  };
  const domain = type === undefined ? {} : { machine: { type } };
  return [patchVm(vm, { metadata, domain, firmware }, 'the VM is about to start')];
}

/**
 * Returns the mark of a started VM where the VM lacks it. A restored VM keeps the mark of its original until its record is
 * complete, because the original's uid leads to the snapshots and MAC addresses that the record is made from.
 */
function missingMark(world: VmWorld): string | undefined {
  const { vm } = world;
  const mark = startedMark(vm.metadata);
  if (vm.metadata.annotations?.[STARTED_ANNOTATION] === mark) return undefined;
  const isIncomplete = ownRecord(world) === undefined || awaitsRebuild(world);
  return restoredFrom(vm) !== undefined && isIncomplete ? undefined : mark;
}
