/**
 * Decides the status of an identity record: from a reading of the guest its machine type and devices, from the template
 * what is to be plugged and what was detached, from an import where everything begins; and the history of what changed
 * and why (history-entries.ts), of the spec of the record, too. Rows, the hash that stands for them and the entries are
 * one write. Pure.
 */
import { appendHistory, type Cause } from '#api/identity-history.ts';
import { importedDevicesOf, type ImportedDevices } from '#api/imported-devices.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentityStatus } from '#api/virtual-machine-identity/kind.ts';
import {
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
import { causeOfLoss, EDIT, IMPORT, startOf } from '#controllers/device-map/change-cause.ts';
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
import { entriesFor, pastOf } from '#controllers/device-map/history-entries.ts';
import type { Reading } from '#controllers/device-map/reading.ts';
import { freedAfter } from '#controllers/device-map/freed-places.ts';
import { classified } from '#controllers/device-map/special-devices.ts';
import { stateClaimOf } from '#controllers/device-map/state-claim.ts';
import { wishesOf } from '#controllers/device-map/wanted-devices.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

/** A node that has no such VM, has not read its devices yet, or answered with something old is asked again. */
export const ASK_AGAIN_MS = 10_000;

export function decideDeviceMap(world: DeviceMapWorld): Plan {
  const vm = ownVm(world);
  if (vm === undefined) return NOTHING;
  const known = world.identity.status ?? {};
  const takesImport = known.devices === undefined && world.snapshot === undefined;
  const imported = takesImport ? importedDevicesOf(vm) : undefined;
  const isFaulty = imported !== undefined && 'fault' in imported;
  const seed = known.devices === undefined && !isFaulty ? seedOf(world, vm, imported) : undefined;
  const next = withFreed(seed ?? known, isFaulty ? undefined : (seed ?? learned(world, vm)));
  const isLost = isRecordLost(vm, world.identity);
  // A lost record says nothing before it is known what it begins with: its history would tell of causes that there are not.
  if (next === undefined && isLost && causeOfLoss(world, vm) === undefined) return NOTHING;
  const plan = written(world, vm, next ?? { ...withoutHistory(known), occasion: { cause: EDIT } });
  const requeueAfterMs = retryAfterMs(world);
  return {
    ...plan,
    ...(isFaulty && { events: [faultyImport(imported.fault)] }),
    ...(requeueAfterMs !== undefined && { requeueAfterMs }),
  };
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

/** What the record says next of machine and devices, and what has brought it. */
interface Next extends Omit<IdentityStatus, 'history' | 'learnedAt' | 'recorded' | 'stateClaim'> {
  readonly occasion: Cause;
  /** What the history says of changes of devices instead of a sentence for each. */
  readonly summary?: string;
  /** The snapshot from which a lost record is rebuilt: its history goes on here. */
  readonly snapshot?: RecordedInSnapshot;
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
  return {
    machine: { type: machine },
    devices,
    deviceHash: reading.hash,
    deviceRevision: reading.revision,
    instance: uid,
    occasion: known.instance === uid ? { cause: WHILE_IT_RAN } : (causeOfLoss(world, vm) ?? startOf(uid)),
    ...(known.devices === undefined && { summary: `first seen as ${machine} with ${devices.length} devices` }),
  };
}

function isSameHardware(world: DeviceMapWorld, speaking: Speaking): boolean {
  if (isOutdated(world, speaking) || chipsetChange(world, speaking.machine) !== undefined) return false;
  return world.identity.status?.deviceHash === speaking.hash;
}

/** Nobody has to be asked: what the hash stands for is on record. */
function startedAgain(world: DeviceMapWorld, vm: VirtualMachine, { uid, machine, revision }: Speaking): Next {
  const isNew = world.identity.status?.instance !== uid;
  const rows = asTheTemplateSays(world, vm);
  return {
    ...rows,
    machine: { type: machine },
    instance: uid,
    ...(isNew ? { deviceRevision: revision, occasion: startOf(uid) } : {}),
  };
}

function asTheTemplateSays(world: DeviceMapWorld, vm: VirtualMachine): Next {
  const known = withoutHistory(world.identity.status ?? {});
  const rows = (known.devices ?? []).map((row) => classified(row, world.special));
  const decide = isAtRest(world) ? restingActions : runningActions;
  const decisions: readonly RowDecision[] = decide(rows, wishesOf(vm));
  const next = { ...known, devices: rowsOf(decisions), occasion: { cause: EDIT } };
  if (!decisions.some(forgets)) return next;
  // The hash stood for rows that are no more: were they to come back, nobody would ask for them.
  const { deviceHash: _, deviceRevision: __, ...rest } = next;
  return rest;
}

/** Returns the rows that a record without devices begins with. What the guest then has is learned as always. */
function seedOf(world: DeviceMapWorld, vm: VirtualMachine, imported: ImportedDevices | undefined): Next | undefined {
  if (world.snapshot !== undefined) return rebuiltRows(world.snapshot);
  if (imported === undefined) return undefined;
  const { from, machine, devices } = imported;
  return {
    ...(machine === undefined ? {} : { machine: { type: machine } }),
    devices: devices as LearnedDevice[],
    occasion: { cause: isRecordLost(vm, world.identity) ? rebuiltFrom(FROM_IMPORT) : IMPORT },
    summary: `imported from ${from} with ${devices.length} devices`,
  };
}

/** Returns the rows of a lost record as a snapshot holds them, with free places, but to be read anew. */
function rebuiltRows(snapshot: RecordedInSnapshot): Next {
  const { deviceHash: _, deviceRevision: __, ...saved } = withoutHistory(snapshot.identity.status ?? {});
  return {
    ...saved,
    occasion: { cause: rebuiltFrom(fromSnapshot(snapshot)) },
    summary: `record lost; ${saved.devices?.length ?? 0} devices taken over`,
    snapshot,
  };
}

const WHILE_IT_RAN = 'a change while it ran';

function withoutHistory(status: IdentityStatus): Omit<Next, 'occasion'> {
  const { history: _, learnedAt: __, recorded: ___, stateClaim: ____, ...rest } = status;
  return rest;
}

/** One write: the rows, their hash, and the entries for all that differs from what the history accounts for. */
function written(
  world: DeviceMapWorld,
  vm: Stored<VirtualMachine>,
  { occasion, summary, snapshot, ...learned }: Next,
): Plan {
  const { identity, now } = world;
  const { history: _, learnedAt, ...known } = identity.status ?? {};
  const past = pastOf(identity, snapshot).status?.history;
  // What a guest is first seen with is one entry.
  const savedClaim = snapshot?.identity.status?.stateClaim;
  const stateClaim = learned.devices === undefined ? known.stateClaim : (stateClaimOf(world) ?? savedClaim);
  const next = { ...learned, ...(stateClaim !== undefined && { stateClaim }), recorded: identity.spec };
  if (deepEqual(known, next)) return NOTHING;
  const entries = entriesFor(world, vm, next, { occasion, snapshot, ...(summary !== undefined && { summary }) });
  const isLearned =
    next.instance !== known.instance || (next.deviceHash !== undefined && next.deviceHash !== known.deviceHash);
  const time = isLearned ? now : learnedAt;
  const history = appendHistory(past, entries);
  const status: IdentityStatus = {
    ...next,
    ...(time === undefined ? {} : { learnedAt: time }),
    ...(history.length === 0 ? {} : { history }),
  };
  return { changes: [], status };
}

function faultyImport(fault: string) {
  const message = `Cannot take over the devices that were imported: annotation ${IMPORTED_DEVICES_ANNOTATION} ${fault}`;
  return { type: 'Warning', reason: 'FaultyImport', message } as const;
}
