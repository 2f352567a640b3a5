/**
 * The state of an identity record as a flat map of fields, the changes between two states, and their replay. The
 * history of a record consists of such changes: replayed in order they lead from state to state, reverted they lead
 * back. Pure.
 *
 *   firmware.uuid  firmware.serial  smbios.<string>  interfaces.<name>.macAddress  interfaces.<name>.addresses
 *   machine.type  stateClaim
 *   devices.<id>           a whole row: in `to` if the device was added, in `from` if it was removed
 *   devices.<id>.<part>    address, bootOrder, plugged ... of a device in both states
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { IdentityChange, IdentitySpec, IdentityStatus } from '#api/virtual-machine-identity/kind.ts';
import { deepEqual } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';

/** Values by field. Devices are whole rows here; their order in the record has no meaning. */
export type IdentityState = ReadonlyMap<string, unknown>;

const DEVICE_PREFIX = 'devices.';

export function buildIdentityState(spec: IdentitySpec, status: IdentityStatus = {}): IdentityState {
  const state = new Map<string, unknown>();
  const set = (field: string, value: unknown) => {
    if (value !== undefined && value !== '') state.set(field, value);
  };
  set('firmware.uuid', spec.firmware?.uuid);
  set('firmware.serial', spec.firmware?.serial);
  for (const [name, text] of Object.entries(spec.smbios ?? {})) set(`smbios.${name}`, text);
  for (const { name, macAddress, addresses = [] } of spec.interfaces ?? []) {
    set(macField(name), macAddress);
    if (addresses.length > 0) set(addressesField(name), addresses);
  }
  set('machine.type', status.machine?.type);
  set('stateClaim', status.stateClaim);
  for (const device of status.devices ?? []) set(`${DEVICE_PREFIX}${device.id}`, device);
  return state;
}

export const macField = (name: string) => `interfaces.${name}.macAddress`;
export const addressesField = (name: string) => `interfaces.${name}.addresses`;

/** Returns the changes that lead from one state to the other, in a fixed order; none if the states are equal. */
export function diffIdentityStates(before: IdentityState, after: IdentityState): IdentityChange[] {
  const fields = [...after.keys(), ...[...before.keys()].filter((field) => !after.has(field))];
  return fields.flatMap((field) => {
    const [from, to] = [before.get(field), after.get(field)];
    if (deepEqual(from, to)) return [];
    if (field.startsWith(DEVICE_PREFIX) && isRecord(from) && isRecord(to)) return partChanges(field, from, to);
    return [changeOf(field, from, to)];
  });
}

function partChanges(field: string, from: Record<string, unknown>, to: Record<string, unknown>): IdentityChange[] {
  const parts = [...new Set([...Object.keys(to), ...Object.keys(from)])];
  return parts
    .filter((part) => !deepEqual(from[part], to[part]))
    .map((part) => changeOf(`${field}.${part}`, from[part], to[part]));
}

function changeOf(field: string, from: unknown, to: unknown): IdentityChange {
  return { field, ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
}

/** Returns the state after the changes. A part of a device that the state does not have changes nothing. */
export function replayChanges(state: IdentityState, changes: readonly IdentityChange[]): IdentityState {
  const next = new Map(state);
  for (const change of changes) {
    const { field, to } = change;
    const part = devicePartOf(change);
    if (part?.name === undefined) {
      setOrDelete(next, field, to);
      continue;
    }
    const key = `${DEVICE_PREFIX}${part.id}`;
    const row = next.get(key);
    if (isRecord(row)) next.set(key, withPart(row, part.name, to));
  }
  return next;
}

/** Returns the state before the changes: the reverse of replayChanges. */
export function revertChanges(state: IdentityState, changes: readonly IdentityChange[]): IdentityState {
  return replayChanges(
    state,
    changes.toReversed().map(({ field, from, to }) => changeOf(field, to, from)),
  );
}

interface DevicePart {
  readonly id: string;
  /** The part of the row, such as `address`; absent if the whole row was added or removed. */
  readonly name?: string;
}

/** Returns the device that a change is about, or undefined if it is about something else. */
export function devicePartOf({ field, from, to }: IdentityChange): DevicePart | undefined {
  if (!field.startsWith(DEVICE_PREFIX)) return undefined;
  const rest = field.slice(DEVICE_PREFIX.length);
  // Ids may contain dots; a whole row contains its id.
  if (idOf(to ?? from) === rest) return { id: rest };
  const dot = rest.lastIndexOf('.');
  return dot < 0 ? { id: rest } : { id: rest.slice(0, dot), name: rest.slice(dot + 1) };
}

/** Returns the rows of a state, by id. */
export function devicesIn(state: IdentityState): Map<string, LearnedDevice> {
  const rows = new Map<string, LearnedDevice>();
  for (const [field, row] of state) {
    const id = field.startsWith(DEVICE_PREFIX) ? idOf(row) : undefined;
    if (id !== undefined) rows.set(id, row as LearnedDevice);
  }
  return rows;
}

function idOf(value: unknown): string | undefined {
  const id = isRecord(value) ? value['id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

function setOrDelete(state: Map<string, unknown>, field: string, value: unknown): void {
  if (value === undefined) state.delete(field);
  else state.set(field, value);
}

function withPart(row: Record<string, unknown>, part: string, value: unknown): Record<string, unknown> {
  const { [part]: _, ...rest } = row;
  return value === undefined ? rest : { ...rest, [part]: value };
}
