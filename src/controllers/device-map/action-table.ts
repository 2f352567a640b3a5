/**
 * What becomes of the rows of a record: the seed's action table, as amended (its rows stand in action-table.test.ts). What
 * the VM still asks for keeps its row and its address; only what was detached loses them. Pure.
 *
 *   a reading of the guest   readActions      all that is told below
 *   the guest runs           runningActions   only whether the template wants a device plugged
 *   the VM is stopped        restingActions   what the template says; what came with the machine stays
 */
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/learned-device.ts';
import { classified, isManagedByItself, type SpecialDevices } from '#controllers/device-map/special-devices.ts';
import { isAskedFor, type Wishes } from '#controllers/device-map/wanted-devices.ts';
import { deepEqual } from '#kube/deep.ts';

/** `release`: the row stays without its address. */
export type Action = 'insert' | 'update' | 'keep' | 'release' | 'delete';

export interface RowDecision {
  readonly id: string;
  readonly action: Action;
  /** As it is to be; absent where it is deleted. */
  readonly row?: LearnedDevice;
}

export interface GuestReading {
  readonly rows: readonly LearnedDevice[];
  readonly reported: readonly LearnedDevice[];
  readonly wishes: Wishes;
  readonly special: SpecialDevices;
  /** The rows are of a machine whose addresses mean nothing here. */
  readonly chipsetChanged: boolean;
}

/** They never have an address, so that nobody misses them in a report. */
const WITHOUT_ADDRESS: ReadonlySet<string> = new Set(['graphics', 'console', 'tpm', 'mdev']);

/** In the order of the report; what it does not tell of comes after it. */
export function readActions(reading: GuestReading): RowDecision[] {
  const rows = reading.chipsetChanged ? reading.rows.map(withoutAddress) : reading.rows;
  const known = new Map(rows.map((row) => [row.id, row]));
  const decisions = new Map<string, RowDecision>();
  for (const device of reading.reported) {
    const { id } = device;
    // The first of two with one id: nobody could tell which is which.
    if (decisions.has(id)) continue;
    const row = known.get(id);
    decisions.set(id, { id, action: row === undefined ? 'insert' : 'update', row: taken(device, row, reading) });
  }
  const places = new Set(reading.reported.flatMap(({ address }) => (isPlace(address) ? [placeText(address)] : [])));
  for (const row of rows) {
    if (!decisions.has(row.id)) decisions.set(row.id, yielding(unreported(row, reading), places));
  }
  return [...decisions.values()];
}

/** While the guest has not told anything new. Nothing is forgotten: the guest may still have it. */
export function runningActions(rows: readonly LearnedDevice[], wishes: Wishes): RowDecision[] {
  return rows.map((row) => {
    const wish = wishes.get(row.id);
    return { id: row.id, action: 'keep', row: wish === undefined ? row : plugged(row, wish.plugged) };
  });
}

/** Unmanaged rows stay: they are passed back to the host at the next start. */
export function restingActions(rows: readonly LearnedDevice[], wishes: Wishes): RowDecision[] {
  return rows.map((row) => (isAskedFor(row) ? asWished(row, wishes) : { id: row.id, action: 'keep', row }));
}

export function rowsOf(decisions: readonly RowDecision[]): LearnedDevice[] {
  return decisions.flatMap(({ row }) => (row === undefined ? [] : [row]));
}

/** What is lost with it can only be learned again. */
export function forgets({ action }: RowDecision): boolean {
  return action === 'delete' || action === 'release';
}

/**
 * Returns a reported device as a row. An empty address keeps the recorded one. A device that the template does not want
 * plugged is marked as unplugged, although the guest still has it.
 */
function taken(device: LearnedDevice, row: LearnedDevice | undefined, { wishes, special }: GuestReading) {
  const managedBefore = row !== undefined && isManagedByItself(row);
  const { address = {}, specParams = row?.specParams, managed = managedBefore, ...told } = device;
  const place = Object.keys(address).length > 0 ? address : row?.address;
  const next: LearnedDevice = {
    ...told,
    ...(place === undefined ? {} : { address: place }),
    managed,
    ...(specParams === undefined ? {} : { specParams }),
  };
  return plugged(classified(next, special), wishes.get(device.id)?.plugged !== false);
}

function unreported(known: LearnedDevice, { wishes, special, chipsetChanged }: GuestReading): RowDecision {
  const row = classified(known, special);
  const { id, type, managed } = row;
  if (WITHOUT_ADDRESS.has(type)) return { id, action: 'keep', row };
  if (isAskedFor(row)) return asWished(row, wishes);
  // Empty ports are places in the guest: those after them would move.
  const isKept = isRootPort(row) ? !chipsetChanged : managed === true;
  return isKept ? { id, action: 'keep', row } : { id, action: 'delete' };
}

/** Of what the guest does not have. */
function asWished(row: LearnedDevice, wishes: Wishes): RowDecision {
  const { id, type, address } = row;
  const wish = wishes.get(id);
  if (wish === undefined) return { id, action: 'delete' };
  const next = plugged(row, wish.plugged);
  if (wish.plugged || type !== 'disk' || address === undefined) return { id, action: 'keep', row: next };
  return { id, action: 'release', row: withoutAddress(next) };
}

/** A place that was given away while all others were taken is not given back. */
function yielding(decision: RowDecision, places: ReadonlySet<string>): RowDecision {
  const { id, row } = decision;
  if (row === undefined || !isPlace(row.address) || !places.has(placeText(row.address))) return decision;
  return { id, action: 'release', row: withoutAddress(row) };
}

/** Drive addresses do not say on which controller: two devices may have the same. */
function isPlace(address: DeviceAddress | undefined): address is DeviceAddress {
  return address?.['type'] === 'pci';
}

function placeText(address: DeviceAddress): string {
  return JSON.stringify(Object.entries(address).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** True is told by its absence. */
function plugged(row: LearnedDevice, isPlugged: boolean): LearnedDevice {
  const { plugged: _, ...rest } = row;
  const next: LearnedDevice = isPlugged ? rest : { ...rest, plugged: false };
  return deepEqual(next, row) ? row : next;
}

function withoutAddress(row: LearnedDevice): LearnedDevice {
  const { address: _, ...rest } = row;
  return rest;
}
