/**
 * Decides the action for each row of a record, by the action table of seed 003 (docs/seeds.md) with amendments (action-table.test.ts lists
 * its rows). A device that the template still requests keeps its row and address; only a detached device loses them.
 * Pure.
 *
 *   a reading of the guest   decideReadRows      all actions
 *   the guest runs           decideRunningRows   only changes whether a device is plugged
 *   the VM is stopped        decideStoppedRows   follows the template; devices that came with the machine stay
 */
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/devices/learned-device.ts';
import { classify, isManagedWithoutList, type SpecialDevices } from '#controllers/device-map/special-devices.ts';
import { isRequestable, type DeviceRequests } from '#controllers/device-map/requested-devices.ts';
import { deepEqual } from '#kube/deep.ts';

/** The action for one row. `release` keeps the row without its address. */
type RowAction = 'insert' | 'update' | 'keep' | 'release' | 'delete';

export interface RowDecision {
  readonly id: string;
  readonly action: RowAction;
  /** The new row; undefined if it is deleted. */
  readonly row?: LearnedDevice;
}

export interface ReadRowsInput {
  readonly rows: readonly LearnedDevice[];
  readonly reported: readonly LearnedDevice[];
  readonly requests: DeviceRequests;
  readonly special: SpecialDevices;
  /** True if the addresses of the rows are those of another chipset, and therefore void. */
  readonly chipsetChanged: boolean;
}

/** Device types that never have an address; their rows stay even if a report does not contain them. */
const WITHOUT_ADDRESS: ReadonlySet<string> = new Set(['graphics', 'console', 'tpm', 'mdev']);

/** Returns decisions for the reported devices, in the order of the report, followed by the other rows. */
export function decideReadRows(input: ReadRowsInput): RowDecision[] {
  const rows = input.chipsetChanged ? input.rows.map(withoutAddress) : input.rows;
  const known = new Map(rows.map((row) => [row.id, row]));
  const decisions = new Map<string, RowDecision>();
  for (const device of input.reported) {
    const { id } = device;
    // Two devices with the same id cannot be distinguished: the first counts.
    if (decisions.has(id)) continue;
    const row = known.get(id);
    decisions.set(id, { id, action: row === undefined ? 'insert' : 'update', row: toRow(device, row, input) });
  }
  const places = new Set(input.reported.flatMap(({ address }) => (isPciAddress(address) ? [addressKey(address)] : [])));
  for (const row of rows) {
    if (!decisions.has(row.id)) decisions.set(row.id, releaseIfTaken(decideUnreported(row, input), places));
  }
  return [...decisions.values()];
}

/** Decides without a new reading. No row is removed: the guest may still have the device. */
export function decideRunningRows(rows: readonly LearnedDevice[], requests: DeviceRequests): RowDecision[] {
  return rows.map((row) => {
    const request = requests.get(row.id);
    return { id: row.id, action: 'keep', row: request === undefined ? row : setPlugged(row, request.plugged) };
  });
}

/** Decides for a stopped VM. Unmanaged rows stay: they are passed to the host again at the next start. */
export function decideStoppedRows(rows: readonly LearnedDevice[], requests: DeviceRequests): RowDecision[] {
  return rows.map((row) => (isRequestable(row) ? decideMissing(row, requests) : { id: row.id, action: 'keep', row }));
}

export function rowsOf(decisions: readonly RowDecision[]): LearnedDevice[] {
  return decisions.flatMap(({ row }) => (row === undefined ? [] : [row]));
}

/** Reports whether the decision loses an address, which can then only be learned again. */
export function losesAddress({ action }: RowDecision): boolean {
  return action === 'delete' || action === 'release';
}

/**
 * Returns a reported device as a row. An empty address keeps the recorded one. A device that is to be unplugged is
 * marked as unplugged although the guest still has it.
 */
function toRow(device: LearnedDevice, row: LearnedDevice | undefined, { requests, special }: ReadRowsInput) {
  const managedBefore = row !== undefined && isManagedWithoutList(row);
  const { address = {}, specParams = row?.specParams, managed = managedBefore, ...reported } = device;
  const place = Object.keys(address).length > 0 ? address : row?.address;
  const next: LearnedDevice = {
    ...reported,
    ...(place === undefined ? {} : { address: place }),
    managed,
    ...(specParams === undefined ? {} : { specParams }),
  };
  return setPlugged(classify(next, special), requests.get(device.id)?.plugged !== false);
}

function decideUnreported(known: LearnedDevice, { requests, special, chipsetChanged }: ReadRowsInput): RowDecision {
  const row = classify(known, special);
  const { id, type, managed } = row;
  if (WITHOUT_ADDRESS.has(type)) return { id, action: 'keep', row };
  if (isRequestable(row)) return decideMissing(row, requests);
  // Empty root ports stay, because without them the following ports would get other addresses.
  const isKept = isRootPort(row) ? !chipsetChanged : managed === true;
  return isKept ? { id, action: 'keep', row } : { id, action: 'delete' };
}

/** Decides for a requestable device that the guest does not have. */
function decideMissing(row: LearnedDevice, requests: DeviceRequests): RowDecision {
  const { id, type, address } = row;
  const request = requests.get(id);
  if (request === undefined) return { id, action: 'delete' };
  const next = setPlugged(row, request.plugged);
  if (request.plugged || type !== 'disk' || address === undefined) return { id, action: 'keep', row: next };
  return { id, action: 'release', row: withoutAddress(next) };
}

/** Releases the address if another device is reported there: it was reused because all others were taken. */
function releaseIfTaken(decision: RowDecision, places: ReadonlySet<string>): RowDecision {
  const { id, row } = decision;
  if (row === undefined || !isPciAddress(row.address) || !places.has(addressKey(row.address))) return decision;
  return { id, action: 'release', row: withoutAddress(row) };
}

/** Reports whether the address is unique. Drive addresses are not: they do not name the controller. */
function isPciAddress(address: DeviceAddress | undefined): address is DeviceAddress {
  return address?.['type'] === 'pci';
}

function addressKey(address: DeviceAddress): string {
  return JSON.stringify(Object.entries(address).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Sets `plugged`; true is represented by its absence. */
function setPlugged(row: LearnedDevice, isPlugged: boolean): LearnedDevice {
  const { plugged: _, ...rest } = row;
  const next: LearnedDevice = isPlugged ? rest : { ...rest, plugged: false };
  return deepEqual(next, row) ? row : next;
}

function withoutAddress(row: LearnedDevice): LearnedDevice {
  const { address: _, ...rest } = row;
  return rest;
}
