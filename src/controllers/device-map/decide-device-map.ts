/**
 * Decides the status of an identity record: machine type and devices from a reading of the guest, plugged and detached
 * devices from the template, the initial devices from an import; and the history of changes and their causes
 * (history-entries.ts), including changes of the spec. Rows, their hash and the entries are one write. Pure.
 */
import { appendHistory, type ChangeCause } from '#api/identity/identity-history.ts';
import { importedDevicesOf, type ImportedDevices } from '#api/devices/imported-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentityStatus } from '#api/virtual-machine-identity/kind.ts';
import {
  IMPORT_CAUSE,
  IMPORT_SOURCE,
  describeSnapshotSource,
  isRecordLost,
  rebuildCause,
  type SnapshotRecord,
} from '#api/virtual-machine-identity/record-state.ts';
import {
  losesAddress,
  decideReadRows,
  decideStoppedRows,
  type RowDecision,
  rowsOf,
  decideRunningRows,
} from '#controllers/device-map/action-table.ts';
import { lossCause, EDIT, startCause } from '#controllers/device-map/change-cause.ts';
import {
  findChipsetChange,
  type DeviceMapWorld,
  isStopped,
  isOutdated,
  ownVm,
  dueReading,
  type ReportingInstance,
  reportingInstance,
} from '#controllers/device-map/device-map-world.ts';
import { buildRecordEntries, previousRecord } from '#controllers/device-map/history-entries.ts';
import type { DeviceReading } from '#controllers/device-map/reading.ts';
import { freedPlacesAfter } from '#controllers/device-map/freed-places.ts';
import { classify } from '#controllers/device-map/special-devices.ts';
import { stateClaimOf } from '#controllers/device-map/state-claim.ts';
import { requestedDevices } from '#controllers/device-map/requested-devices.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

/** The delay before a VM is read again that its node does not have, has not read yet, or reported with old data. */
export const REREAD_MS = 10_000;

export function decideDeviceMap(world: DeviceMapWorld): Plan {
  const vm = ownVm(world);
  if (vm === undefined) return EMPTY_PLAN;
  const known = world.identity.status ?? {};
  const usesImport = known.devices === undefined && world.snapshot === undefined;
  const imported = usesImport ? importedDevicesOf(vm) : undefined;
  const isImportInvalid = imported !== undefined && 'fault' in imported;
  const initial = known.devices === undefined && !isImportInvalid ? initialStatus(world, vm, imported) : undefined;
  const next = addFreedPlaces(initial ?? known, isImportInvalid ? undefined : (initial ?? learn(world, vm)));
  const isLost = isRecordLost(vm, world.identity);
  // A lost record is not written before the source of its devices is known: its history would have wrong causes.
  if (next === undefined && isLost && lossCause(world, vm) === undefined) return EMPTY_PLAN;
  const plan = planWrite(world, vm, next ?? { ...withoutHistory(known), occasion: { cause: EDIT } });
  const requeueAfterMs = retryAfterMs(world);
  return {
    ...plan,
    ...(isImportInvalid && { events: [importErrorEvent(imported.fault)] }),
    ...(requeueAfterMs !== undefined && { requeueAfterMs }),
  };
}

/** Adds the places of removed rows, so that other devices do not get them. */
function addFreedPlaces(known: IdentityStatus, next: NextStatus | undefined): NextStatus | undefined {
  if (next === undefined) return undefined;
  const { freed: _, ...rest } = next;
  const freed = freedPlacesAfter(known, next);
  return freed.length === 0 ? rest : { ...rest, freed };
}

/** Returns when to read again, if a reading is due and the node did not deliver it. */
function retryAfterMs(world: DeviceMapWorld): number | undefined {
  const { reading } = world;
  if (reading === undefined || dueReading(world) === undefined) return undefined;
  if ('retryAfterMs' in reading) return reading.retryAfterMs;
  // A reading that is older than the revision in the status of the instance is used, but another one must follow.
  const isCurrent = freshReading(world) !== undefined && reading.revision >= (reportingInstance(world)?.revision ?? 0);
  return isCurrent ? undefined : REREAD_MS;
}

/**
 * Reports whether the template makes a stopped VM lose rows or addresses; the VM must be read from the server first.
 */
export function losesAddressesWhenStopped(world: DeviceMapWorld): boolean {
  const vm = ownVm(world);
  if (vm === undefined || !isStopped(world)) return false;
  return decideStoppedRows(world.identity.status?.devices ?? [], requestedDevices(vm)).some(losesAddress);
}

/** The new machine type and devices of a record, and their cause. */
interface NextStatus extends Omit<IdentityStatus, 'history' | 'learnedAt' | 'recorded' | 'stateClaim'> {
  readonly occasion: ChangeCause;
  /** One sentence for the history instead of one per changed device. */
  readonly summary?: string;
  /** The snapshot from which a lost record is rebuilt; its history is continued. */
  readonly snapshot?: SnapshotRecord;
}

function learn(world: DeviceMapWorld, vm: VirtualMachine): NextStatus | undefined {
  const reporting = reportingInstance(world);
  const reading = freshReading(world);
  if (reporting !== undefined && reading !== undefined) return learnFromReading(world, vm, { ...reporting, reading });
  const { devices } = world.identity.status ?? {};
  if (devices === undefined) return undefined;
  return reporting !== undefined && isSameHardware(world, reporting)
    ? learnFromStart(world, vm, reporting)
    : learnFromTemplate(world, vm);
}

/** Returns the reading if it is of the running instance and not older than the record. */
function freshReading(world: DeviceMapWorld): DeviceReading | undefined {
  const { reading } = world;
  if (reading === undefined || 'retryAfterMs' in reading || reading.vmId !== reportingInstance(world)?.uid)
    return undefined;
  return isOutdated(world, { uid: reading.vmId, revision: reading.revision }) ? undefined : reading;
}

function learnFromReading(
  world: DeviceMapWorld,
  vm: VirtualMachine,
  { uid, reading, ...reporting }: ReportingInstance & { reading: DeviceReading },
): NextStatus {
  const known = world.identity.status ?? {};
  const machine = reading.machine === '' ? reporting.machine : reading.machine;
  const chipset = findChipsetChange(world, machine);
  const devices = rowsOf(
    decideReadRows({
      rows: known.devices ?? [],
      reported: reading.devices,
      requests: requestedDevices(vm),
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
    occasion: known.instance === uid ? { cause: CHANGED_WHILE_RUNNING } : (lossCause(world, vm) ?? startCause(uid)),
    ...(known.devices === undefined && { summary: `first seen as ${machine} with ${devices.length} devices` }),
  };
}

function isSameHardware(world: DeviceMapWorld, reporting: ReportingInstance): boolean {
  if (isOutdated(world, reporting) || findChipsetChange(world, reporting.machine) !== undefined) return false;
  return world.identity.status?.deviceHash === reporting.hash;
}

/** Learns without a reading: the hash shows that the recorded devices are still correct. */
function learnFromStart(
  world: DeviceMapWorld,
  vm: VirtualMachine,
  { uid, machine, revision }: ReportingInstance,
): NextStatus {
  const isNew = world.identity.status?.instance !== uid;
  const rows = learnFromTemplate(world, vm);
  return {
    ...rows,
    machine: { type: machine },
    instance: uid,
    ...(isNew ? { deviceRevision: revision, occasion: startCause(uid) } : {}),
  };
}

function learnFromTemplate(world: DeviceMapWorld, vm: VirtualMachine): NextStatus {
  const known = withoutHistory(world.identity.status ?? {});
  const rows = (known.devices ?? []).map((row) => classify(row, world.special));
  const decide = isStopped(world) ? decideStoppedRows : decideRunningRows;
  const decisions: readonly RowDecision[] = decide(rows, requestedDevices(vm));
  const next = { ...known, devices: rowsOf(decisions), occasion: { cause: EDIT } };
  if (!decisions.some(losesAddress)) return next;
  // The hash is that of removed rows: if they came back, they would not be read again.
  const { deviceHash: _, deviceRevision: __, ...rest } = next;
  return rest;
}

/** Returns the initial rows of a record without devices. The devices of the guest are learned afterwards, as always. */
function initialStatus(
  world: DeviceMapWorld,
  vm: VirtualMachine,
  imported: ImportedDevices | undefined,
): NextStatus | undefined {
  if (world.snapshot !== undefined) return rebuildFromSnapshot(world.snapshot);
  if (imported === undefined) return undefined;
  const { from, machine, devices } = imported;
  return {
    ...(machine === undefined ? {} : { machine: { type: machine } }),
    devices: devices as LearnedDevice[],
    occasion: { cause: isRecordLost(vm, world.identity) ? rebuildCause(IMPORT_SOURCE) : IMPORT_CAUSE },
    summary: `imported from ${from} with ${devices.length} devices`,
  };
}

/** Returns the rows and freed places of a snapshot, without the hash, so that the guest is read again. */
function rebuildFromSnapshot(snapshot: SnapshotRecord): NextStatus {
  const { deviceHash: _, deviceRevision: __, ...saved } = withoutHistory(snapshot.identity.status ?? {});
  return {
    ...saved,
    occasion: { cause: rebuildCause(describeSnapshotSource(snapshot)) },
    summary: `record lost; ${saved.devices?.length ?? 0} devices taken over`,
    snapshot,
  };
}

const CHANGED_WHILE_RUNNING = 'a change while it ran';

function withoutHistory(status: IdentityStatus): Omit<NextStatus, 'occasion'> {
  const { history: _, learnedAt: __, recorded: ___, stateClaim: ____, ...rest } = status;
  return rest;
}

/** Plans one write of the rows, their hash, and history entries for all changes since the last entry. */
function planWrite(
  world: DeviceMapWorld,
  vm: Stored<VirtualMachine>,
  { occasion, summary, snapshot, ...learned }: NextStatus,
): Plan {
  const { identity, now } = world;
  const { history: _, learnedAt, ...known } = identity.status ?? {};
  const past = previousRecord(identity, snapshot).status?.history;
  const savedClaim = snapshot?.identity.status?.stateClaim;
  const stateClaim = learned.devices === undefined ? known.stateClaim : (stateClaimOf(world) ?? savedClaim);
  const next = { ...learned, ...(stateClaim !== undefined && { stateClaim }), recorded: identity.spec };
  if (deepEqual(known, next)) return EMPTY_PLAN;
  const entries = buildRecordEntries(world, vm, next, {
    occasion,
    snapshot,
    ...(summary !== undefined && { summary }),
  });
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

function importErrorEvent(fault: string) {
  const message = `Cannot record the imported devices: annotation ${IMPORTED_DEVICES_ANNOTATION} ${fault}; correct or remove the annotation`;
  return { type: 'Warning', reason: 'FaultyImport', message } as const;
}
