/** Renders changes of an identity record: sentences for its history, and rows for a table. Pure. */
import { chipsetOf } from '#api/devices/chipset.ts';
import { formatAddress } from '#api/devices/device-address.ts';
import { devicePartOf } from '#api/identity/identity-changes.ts';
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/devices/learned-device.ts';
import type { HistoryEntry, IdentityChange } from '#api/virtual-machine-identity/kind.ts';
import { isRecord } from '#kube/meta.ts';

const NO_ADDRESS = 'no address';
const NONE = '<none>';
/** Changes hold values of any length; a table shows the beginning. */
const MAX_VALUE = 80;
/** If one entry has more devices, a table shows only their number. */
const MAX_DEVICE_ROWS = 12;

const NAMES: Readonly<Record<string, string>> = {
  'firmware.uuid': 'firmware uuid',
  'firmware.serial': 'serial',
  'machine.type': 'machine type',
  stateClaim: 'state claim',
};
const MAC = /^interfaces\.(.+)\.macAddress$/;
const ADDRESSES = /^interfaces\.(.+)\.addresses$/;
const SMBIOS = 'smbios.';

/**
 * Returns one sentence for each subject that changed, and one for each range of root ports. Minor properties of devices
 * get none.
 */
export function renderChanges(changes: readonly IdentityChange[]): string[] {
  const bySubject = Map.groupBy(changes, subjectOf);
  const sentences = [...bySubject.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const device = devicePartOf(first);
    return device === undefined ? group.flatMap(renderPlainChange) : renderDeviceChanges(device.id, group);
  });
  return [...sentences, ...findPortRanges(changes).map(renderPortRange)];
}

/** Reports whether the change adds or removes a root port. */
export function isPortChange(change: IdentityChange): boolean {
  const row = change.to ?? change.from;
  return devicePartOf(change)?.name === undefined && isRecord(row) && isRootPort(row as LearnedDevice);
}

/** Root ports with consecutive numbers that came or went together. */
interface PortRange {
  readonly first: LearnedDevice;
  readonly last: LearnedDevice;
  readonly isNew: boolean;
}

function findPortRanges(changes: readonly IdentityChange[]): PortRange[] {
  const ports = changes.filter(isPortChange).map(({ from, to }) => ({ row: (to ?? from) as LearnedDevice, from }));
  const ranges: PortRange[] = [];
  for (const { row, from } of ports.toSorted((a, b) => portNumber(a.row) - portNumber(b.row))) {
    const isNew = from === undefined;
    const at = ranges.findIndex((range) => range.isNew === isNew && portNumber(range.last) + 1 === portNumber(row));
    const range = ranges[at];
    if (range === undefined) ranges.push({ first: row, last: row, isNew });
    else ranges[at] = { ...range, last: row };
  }
  return ranges;
}

/** Returns the number in the id, or -1 for an imported port with another id. */
function portNumber({ id }: LearnedDevice): number {
  const [, digits] = /^rp(\d{1,2})$/.exec(id) ?? [];
  return digits === undefined ? -1 : Number(digits);
}

function renderPortRange({ first, last, isNew }: PortRange): string {
  const verb = `${first.id === last.id ? 'is' : 'are'} ${isNew ? 'new at' : 'gone from'}`;
  return `${rangeText(first.id, last.id)} ${verb} ${rangeText(placeOf(first), placeOf(last))}`;
}

function portRow({ first, last, isNew }: PortRange): ChangeRow {
  const place = rangeText(placeOf(first), placeOf(last));
  return { what: rangeText(first.id, last.id), from: isNew ? NONE : place, to: isNew ? place : NONE };
}

const rangeText = (first: string, last: string) => (first === last ? first : `${first} to ${last}`);

/** Returns the number of devices whose changes have no sentence in renderChanges. */
export function countSilentDevices(changes: readonly IdentityChange[]): number {
  const groups = Map.groupBy(
    changes.filter((change) => !isPortChange(change)),
    (change) => devicePartOf(change)?.id,
  );
  return [...groups].filter(([id, group]) => id !== undefined && renderDeviceChanges(id, group).length === 0).length;
}

function subjectOf(change: IdentityChange): string {
  const device = devicePartOf(change);
  return device === undefined ? change.field : `device ${device.id}`;
}

function renderPlainChange({ field, from, to }: IdentityChange): string[] {
  const name = nameOf(field);
  if (to === undefined) return [`${name} ${valueText(from)} is gone`];
  if (from === undefined) return [`${name} is ${valueText(to)}`];
  const text = `${name} changed from ${valueText(from)} to ${valueText(to)}`;
  const [before, after] = field === 'machine.type' ? [chipsetOf(valueText(from)), chipsetOf(valueText(to))] : [];
  if (before === undefined || after === undefined || before === after) return [text];
  return [text, `chipset changed from ${before} to ${after}: no device keeps its address`];
}

function nameOf(field: string): string {
  const [, nic] = MAC.exec(field) ?? [];
  if (nic !== undefined) return `MAC of ${nic}`;
  const [, addressed] = ADDRESSES.exec(field) ?? [];
  if (addressed !== undefined) return `address of ${addressed}`;
  if (field.startsWith(SMBIOS)) return `SMBIOS ${field.slice(SMBIOS.length)}`;
  return Object.hasOwn(NAMES, field) ? (NAMES[field] ?? field) : field;
}

function renderDeviceChanges(id: string, changes: readonly IdentityChange[]): string[] {
  const wholeRow = changes.find((change) => devicePartOf(change)?.name === undefined);
  if (wholeRow !== undefined) return renderWholeRow(id, wholeRow);
  const parts = partsOf(changes);
  const [address, plugged, order] = [parts.get('address'), parts.get('plugged'), parts.get('bootOrder')];
  const special = parts.get('specialManaged');
  return [
    ...(plugged === undefined ? renderMove(id, address) : [renderPlug(id, plugged, address)]),
    ...(special === undefined ? [] : [renderSpecialManaged(id, special)]),
    ...(order === undefined
      ? []
      : [`boot order of ${id} changed from ${valueText(order.from ?? 'none')} to ${valueText(order.to ?? 'none')}`]),
  ];
}

function renderWholeRow(id: string, { from, to }: IdentityChange): string[] {
  const row = (to ?? from) as LearnedDevice;
  if (isRootPort(row)) return [];
  const place = placeOf(row);
  if (to === undefined) return [`${id} is gone from ${place}`];
  return [`${id} is new at ${place}${row.plugged === false ? ', unplugged' : ''}`];
}

function renderMove(id: string, address: IdentityChange | undefined): string[] {
  if (address === undefined) return [];
  return [`${id} moved from ${addressOf(address.from)} to ${addressOf(address.to)}`];
}

function renderPlug(id: string, { to }: IdentityChange, address: IdentityChange | undefined): string {
  if (to === false) {
    return address === undefined
      ? `${id} is unplugged and keeps its address`
      : `${id} is unplugged; ${addressOf(address.from)} is released`;
  }
  return address === undefined ? `${id} is plugged in` : `${id} is plugged in at ${addressOf(address.to)}`;
}

function renderSpecialManaged(id: string, { to }: IdentityChange): string {
  return to === true
    ? `${id} is managed now: specialManagedDevices lists it`
    : `${id} is no longer managed: specialManagedDevices does not list it`;
}

function partsOf(changes: readonly IdentityChange[]): Map<string, IdentityChange> {
  return new Map(changes.map((change) => [devicePartOf(change)?.name ?? '', change]));
}

const addressOf = (value: unknown) => placeOf({ address: value as DeviceAddress | undefined });
const placeOf = (device: Pick<LearnedDevice, 'address' | 'specParams'>) => formatAddress(device) || NO_ADDRESS;

interface ChangeRow {
  readonly what: string;
  readonly from: string;
  readonly to: string;
}

/** Rows by id, from which a table takes properties that the changes do not contain. */
type RowLookup = ReadonlyMap<string, Pick<LearnedDevice, 'specParams'>>;

/** Returns the table rows of an entry. Entries of older versions have no changes, only their text. */
export function renderChangeRows(
  { what = '', changes = [] }: HistoryEntry,
  recorded: RowLookup = new Map(),
): ChangeRow[] {
  if (changes.length === 0) return [{ what, from: '', to: '' }];
  const smbios = changes.filter(({ field }) => field.startsWith(SMBIOS));
  const plain = changes.filter((change) => devicePartOf(change) === undefined && !smbios.includes(change));
  const devices = Map.groupBy(
    changes.filter((change) => devicePartOf(change) !== undefined),
    (change) => devicePartOf(change)?.id ?? '',
  );
  return [
    ...plain.map(({ field, from, to }) => ({ what: nameOf(field), from: shortenValue(from), to: shortenValue(to) })),
    ...(smbios.length === 0 ? [] : [smbiosRow(smbios)]),
    ...deviceRows(devices, recorded),
  ];
}

function smbiosRow(changes: readonly IdentityChange[]): ChangeRow {
  const strings = (side: 'from' | 'to') =>
    shortenValue(changes.flatMap((change) => (change[side] === undefined ? [] : [valueText(change[side])])).join(', '));
  return { what: 'SMBIOS strings', from: strings('from'), to: strings('to') };
}

function deviceRows(devices: ReadonlyMap<string, readonly IdentityChange[]>, rows: RowLookup): ChangeRow[] {
  const all = [...devices].filter(([, changes]) => !changes.some(isPortChange));
  const listed = all.filter(([id, changes]) => renderDeviceChanges(id, changes).length > 0);
  const minor = all.length - listed.length;
  const isAdded = listed.every(([, changes]) => changes.every(({ from }) => from === undefined));
  return [
    ...(listed.length > MAX_DEVICE_ROWS
      ? [countRow(`${listed.length} devices`, isAdded)]
      : listed.flatMap(([id, changes]) => changes.map((change) => deviceRow(id, change, rows)))),
    ...findPortRanges([...devices.values()].flat()).map(portRow),
    ...(minor === 0 ? [] : [{ what: countText(minor, 'device'), from: '', to: 'minor properties' }]),
  ];
}

const countText = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
const countRow = (what: string, isAdded: boolean): ChangeRow => ({ what, from: isAdded ? NONE : '', to: '' });

function deviceRow(id: string, change: IdentityChange, rows: RowLookup): ChangeRow {
  const { from, to } = change;
  const { name } = devicePartOf(change) ?? { id };
  if (name === undefined) return { what: id, from: rowPlace(from), to: rowPlace(to) };
  if (name === 'address') {
    // The bus of a drive is a part of the row, not of its address.
    const { specParams } = rows.get(id) ?? {};
    const placeText = (value: unknown) =>
      placeOf({ address: value as DeviceAddress | undefined, ...(specParams && { specParams }) });
    return { what: `${id} address`, from: placeText(from), to: placeText(to) };
  }
  if (name === 'plugged') return { what: `${id} plugged`, from: pluggedText(from), to: pluggedText(to) };
  const what = name === 'bootOrder' ? `${id} boot order` : `${id} ${name === 'specParams' ? 'properties' : name}`;
  return { what, from: shortenValue(from), to: shortenValue(to) };
}

const rowPlace = (row: unknown) => (row === undefined ? NONE : placeOf(row as LearnedDevice));
const pluggedText = (value: unknown) => (value === false ? 'no' : 'yes');

function shortenValue(value: unknown): string {
  const text = valueText(value);
  if (text === '') return NONE;
  return text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE - 1)}…`;
}

function valueText(value: unknown): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  if (!isRecord(value)) return typeof value === 'string' ? value : JSON.stringify(value);
  return Object.entries(value)
    .map(([key, part]) => `${key}=${isRecord(part) ? `(${valueText(part)})` : valueText(part)}`)
    .join(', ');
}
