/**
 * What the identity record learns: from a reading of the guest its machine type and devices, from the template what is to
 * be plugged and what was detached, from an import where everything begins; and a bounded history of what changed and why.
 * Rows and the hash that stands for them are one write. Pure.
 */
import { importedDevicesOf, type ImportedDevices } from '#api/imported-devices.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { type IdentityStatus, MAX_HISTORY } from '#api/virtual-machine-identity/kind.ts';
import {
  acceptsNewLayout,
  FROM_GUEST,
  FROM_IMPORT,
  fromSnapshot,
  isRecordLost,
  rebuiltFrom,
  type RecordedInSnapshot,
} from '#api/virtual-machine-identity/record-state.ts';
import {
  forgets,
  readActions,
  restingActions,
  type RowDecision,
  rowsOf,
  runningActions,
} from '#controllers/device-map/action-table.ts';
import { deviceChanges } from '#api/device-changes.ts';
import {
  chipsetChange,
  type DeviceMapWorld,
  isAtRest,
  isOutdated,
  ownVm,
  readingDue,
  type Speaking,
  speakingInstance,
} from '#controllers/device-map/device-map-world.ts';
import type { Reading } from '#controllers/device-map/reading.ts';
import { freedAfter } from '#controllers/device-map/freed-places.ts';
import { classificationChanges, classified } from '#controllers/device-map/special-devices.ts';
import { wishesOf } from '#controllers/device-map/wanted-devices.ts';
import { deepEqual } from '#kube/deep.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

/** A node that has no such VM, has not read its devices yet, or answered with something old is asked again. */
export const ASK_AGAIN_MS = 10_000;
/** The cause, in the history of a record, of a row that became managed or unmanaged without any change of the VM. */
const LIST_CHANGED = 'a change of specialManagedDevices';

export function decideDeviceMap(world: DeviceMapWorld): Plan {
  const vm = ownVm(world);
  if (vm === undefined) return NOTHING;
  const known = world.identity.status ?? {};
  const takesImport = known.devices === undefined && world.snapshot === undefined;
  const imported = takesImport ? importedDevicesOf(vm) : undefined;
  if (imported !== undefined && 'fault' in imported) return { changes: [], events: [faultyImport(imported.fault)] };
  const seed = known.devices === undefined ? seedOf(world, vm, imported) : undefined;
  const next = withFreed(seed ?? known, seed ?? learned(world, vm));
  const { what, past, ...status } = next ?? { what: [] };
  const plan = next === undefined || sameExceptTime(known, status) ? NOTHING : written(world, status, { what, past });
  const requeueAfterMs = retryAfterMs(world);
  return requeueAfterMs === undefined ? plan : { ...plan, requeueAfterMs };
}

/** Places that are given up are remembered with the rows that are not any more. */
function withFreed(known: IdentityStatus, next: Next | undefined): Next | undefined {
  if (next === undefined) return undefined;
  const { freed: _, ...rest } = next;
  const freed = freedAfter(known, next);
  return freed.length === 0 ? rest : { ...rest, freed };
}

/** For a reading that is due, and was asked for in vain. */
function retryAfterMs(world: DeviceMapWorld): number | undefined {
  const { reading } = world;
  if (reading === undefined || readingDue(world) === undefined) return undefined;
  if ('retryAfterMs' in reading) return reading.retryAfterMs;
  // One that is older than what the instance tells of is taken, but is not all that there is to know.
  const isWhole = freshReading(world) !== undefined && reading.revision >= (speakingInstance(world)?.revision ?? 0);
  return isWhole ? undefined : ASK_AGAIN_MS;
}

/** Whether rows or addresses are lost by what the template says: worth a look at the VM as it is now. */
export function forgetsAtRest(world: DeviceMapWorld): boolean {
  const vm = ownVm(world);
  if (vm === undefined || !isAtRest(world)) return false;
  return restingActions(world.identity.status?.devices ?? [], wishesOf(vm)).some(forgets);
}

/** A status without its times, and what happened, in words. */
interface Next extends Omit<IdentityStatus, 'history'> {
  readonly what: readonly { readonly what: string; readonly cause: string }[];
  /** The history that comes before that of the record. */
  readonly past?: IdentityStatus['history'];
}

function learned(world: DeviceMapWorld, vm: VirtualMachine): Next | undefined {
  const speaking = speakingInstance(world);
  const reading = freshReading(world);
  if (speaking !== undefined && reading !== undefined) return read(world, vm, { ...speaking, reading });
  const { devices } = world.identity.status ?? {};
  if (devices === undefined) return undefined;
  return speaking !== undefined && isSameHardware(world, speaking)
    ? startedAgain(world, vm, speaking)
    : asTheTemplateSays(world, vm);
}

/** Undefined where it tells nothing of the instance that speaks now, or less than is known. */
function freshReading(world: DeviceMapWorld): Reading | undefined {
  const { reading } = world;
  if (reading === undefined || 'retryAfterMs' in reading || reading.vmId !== speakingInstance(world)?.uid)
    return undefined;
  return isOutdated(world, { uid: reading.vmId, revision: reading.revision }) ? undefined : reading;
}

function read(
  world: DeviceMapWorld,
  vm: VirtualMachine,
  { uid, reading, ...speaking }: Speaking & { reading: Reading },
): Next {
  const known = world.identity.status ?? {};
  const machine = reading.machine === '' ? speaking.machine : reading.machine;
  const chipset = chipsetChange(world, machine);
  const devices = rowsOf(
    readActions({
      rows: known.devices ?? [],
      reported: reading.devices,
      wishes: wishesOf(vm),
      special: world.special,
      chipsetChanged: chipset !== undefined,
    }),
  );
  const what =
    known.devices === undefined
      ? [`first seen as ${machine} with ${devices.length} devices`]
      : [
          ...machineChanges(known, machine),
          ...(chipset === undefined
            ? []
            : [`chipset changed from ${chipset.from} to ${chipset.to}: no device keeps its address`]),
          ...deviceChanges(known.devices, devices),
        ];
  return {
    machine: { type: machine },
    devices,
    deviceHash: reading.hash,
    deviceRevision: reading.revision,
    instance: uid,
    what: [
      ...because(classificationChanges(known.devices ?? [], world.special), LIST_CHANGED),
      ...because(what, known.instance === uid ? 'a change while it ran' : causeOfFirst(world, vm, uid)),
    ],
  };
}

/** Returns the cause of what is seen of another instance than the one on record. */
function causeOfFirst({ identity }: DeviceMapWorld, vm: VirtualMachine, uid: string): string {
  if (!isRecordLost(vm, identity)) return `the start of instance ${uid}`;
  if (!acceptsNewLayout(vm)) return rebuiltFrom(`${FROM_GUEST}, instance ${uid}`);
  return `a new layout was accepted after the loss of record ${vm.status?.identityRecordUID}`;
}

function isSameHardware(world: DeviceMapWorld, speaking: Speaking): boolean {
  if (isOutdated(world, speaking) || chipsetChange(world, speaking.machine) !== undefined) return false;
  return world.identity.status?.deviceHash === speaking.hash;
}

/** Nobody has to be asked: what the hash stands for is on record. */
function startedAgain(world: DeviceMapWorld, vm: VirtualMachine, { uid, machine, revision }: Speaking): Next {
  const known = world.identity.status ?? {};
  const isNew = known.instance !== uid;
  const changes = because(machineChanges(known, machine), `the start of instance ${uid}`);
  const { what, ...rows } = asTheTemplateSays(world, vm);
  return {
    ...rows,
    machine: { type: machine },
    instance: uid,
    ...(isNew ? { deviceRevision: revision } : {}),
    what: [...changes, ...what],
  };
}

function asTheTemplateSays(world: DeviceMapWorld, vm: VirtualMachine): Next {
  const { history: _, learnedAt: __, ...known } = world.identity.status ?? {};
  const recorded = known.devices ?? [];
  const rows = recorded.map((row) => classified(row, world.special));
  const decide = isAtRest(world) ? restingActions : runningActions;
  const decisions: readonly RowDecision[] = decide(rows, wishesOf(vm));
  const devices = rowsOf(decisions);
  const what = [
    ...because(classificationChanges(recorded, world.special), LIST_CHANGED),
    ...because(deviceChanges(rows, devices), 'a change of the VM'),
  ];
  if (!decisions.some(forgets)) return { ...known, devices, what };
  // The hash stood for rows that are no more: were they to come back, nobody would ask for them.
  const { deviceHash: ___, deviceRevision: ____, ...rest } = known;
  return { ...rest, devices, what };
}

/** Returns the rows that a record without devices begins with. What the guest then has is learned as always. */
function seedOf(world: DeviceMapWorld, vm: VirtualMachine, imported: ImportedDevices | undefined): Next | undefined {
  if (world.snapshot !== undefined) return rebuiltRows(world.snapshot);
  if (imported === undefined) return undefined;
  const { from, machine, devices } = imported;
  const what = [`imported from ${from} with ${devices.length} devices`];
  return {
    ...(machine === undefined ? {} : { machine: { type: machine } }),
    devices: devices as LearnedDevice[],
    what: because(what, isRecordLost(vm, world.identity) ? rebuiltFrom(FROM_IMPORT) : 'the import of the VM'),
  };
}

/** Returns the rows of a lost record as a snapshot holds them, with free places and history, but to be read anew. */
function rebuiltRows(snapshot: RecordedInSnapshot): Next {
  const {
    deviceHash: _,
    deviceRevision: __,
    learnedAt: ___,
    history: past = [],
    ...saved
  } = snapshot.identity.status ?? {};
  const what = [`record lost; ${saved.devices?.length ?? 0} devices taken over`];
  return { ...saved, what: because(what, rebuiltFrom(fromSnapshot(snapshot))), past };
}

function machineChanges({ machine }: IdentityStatus, now: string): string[] {
  return machine?.type === now ? [] : [`machine type changed from ${machine?.type ?? 'none'} to ${now}`];
}

function because(changes: readonly string[], cause: string): Next['what'] {
  return changes.map((what) => ({ what, cause }));
}

function sameExceptTime(known: IdentityStatus, next: Omit<Next, 'what' | 'past'>): boolean {
  const { history: _, learnedAt: __, ...before } = known;
  return deepEqual(before, next);
}

function written(
  { identity, now }: DeviceMapWorld,
  next: Omit<Next, 'what' | 'past'>,
  { what, past = [] }: Pick<Next, 'what' | 'past'>,
): Plan {
  const { history = [], instance, deviceHash, learnedAt } = identity.status ?? {};
  const isLearned = next.instance !== instance || (next.deviceHash !== undefined && next.deviceHash !== deviceHash);
  const time = isLearned ? now : learnedAt;
  const entries = [...past, ...history, ...what.map((entry) => ({ at: now, ...entry }))].slice(-MAX_HISTORY);
  const status: IdentityStatus = {
    ...next,
    ...(time === undefined ? {} : { learnedAt: time }),
    ...(entries.length === 0 ? {} : { history: entries }),
  };
  return { changes: [], status };
}

function faultyImport(fault: string) {
  const message = `Cannot take over the devices that were imported: annotation ${IMPORTED_DEVICES_ANNOTATION} ${fault}`;
  return { type: 'Warning', reason: 'FaultyImport', message } as const;
}
