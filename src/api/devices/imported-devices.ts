/**
 * The machine type and devices of an imported machine: written to the VM at creation as JSON
 * (IMPORTED_DEVICES_ANNOTATION), and copied into its identity record before the first start. Any user can write the
 * annotation, so it is parsed strictly, and either completely or not at all. Pure.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

export interface ImportedDevices {
  /** Origin, for the history: `OVF of oVirt 4.1`. */
  readonly from: string;
  /** The machine type that it ran on, if known. */
  readonly machine?: string;
  readonly devices: readonly LearnedDevice[];
}

const MAX_IMPORTED_DEVICES = 200;
const MAX_IMPORTED_BYTES = 100 * 1024;

const MAX_TEXT = 256;
const MAX_KEYS = 64;
const MAX_DEPTH = 8;
const MACHINE_TYPE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const DEVICE_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;
// oxlint-disable-next-line no-control-regex
const TEXT = /^[^\u0000-\u001f\u007f]*$/;

/** Returns undefined if nothing was imported. Parses again, because the VM may have been stored without admission. */
export function importedDevicesOf({
  metadata,
}: Pick<KubeObject, 'metadata'>): ReturnType<typeof parseImportedDevices> | undefined {
  const text = metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION];
  return text === undefined ? undefined : parseImportedDevices(text);
}

/** The error names the device and the field: `devices[3].address.slot is not a string`. */
export function parseImportedDevices(text: string): ImportedDevices | { readonly fault: string } {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_IMPORTED_BYTES) return { fault: `has ${bytes} bytes, more than ${MAX_IMPORTED_BYTES}` };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: 'is not JSON' };
  }
  const fault = checkImport(value);
  return fault === undefined ? (value as ImportedDevices) : { fault };
}

/** Returns the error of a value at a path, or undefined if it is valid. */
type Check = (value: unknown, path: string) => string | undefined;

function checkImport(value: unknown): string | undefined {
  if (!isRecord(value)) return 'is not an object';
  const { devices } = value;
  return (
    checkFields(value, '', {
      from: required(checkText),
      machine: optional(checkMachineType),
      devices: required(checkList),
    }) ??
    (devices as unknown[]).map((device, i) => checkDevice(device, `devices[${i}]`)).find(isError) ??
    findDuplicate(devices as LearnedDevice[])
  );
}

const checkDevice: Check = (device, path) =>
  isRecord(device) ? checkFields(device, `${path}.`, DEVICE_FIELDS) : `${path} is not an object`;

function checkFields(
  object: Record<string, unknown>,
  prefix: string,
  fields: Readonly<Record<string, Check>>,
): string | undefined {
  const unknown = Object.keys(object).find((key) => !Object.hasOwn(fields, key));
  if (unknown !== undefined) return `${prefix}${quoteKey(unknown)} is not a known field`;
  return Object.entries(fields)
    .map(([key, check]) => check(object[key], `${prefix}${key}`))
    .find(isError);
}

const isError = (fault: string | undefined) => fault !== undefined;
const optional =
  (check: Check): Check =>
  (value, path) =>
    value === undefined ? undefined : check(value, path);
const required =
  (check: Check): Check =>
  (value, path) =>
    value === undefined ? `${path} is missing` : check(value, path);

const checkText: Check = (value, path) => {
  if (typeof value !== 'string') return `${path} is not a string`;
  return value.length <= MAX_TEXT && TEXT.test(value)
    ? undefined
    : `${path} is not a single line of at most ${MAX_TEXT} characters`;
};
const checkWord: Check = (value, path) => checkText(value, path) ?? (value === '' ? `${path} is empty` : undefined);
const checkPattern =
  (pattern: RegExp, what: string): Check =>
  (value, path) =>
    typeof value === 'string' && pattern.test(value) ? undefined : `${path} is not a valid ${what}`;
const checkMachineType = checkPattern(MACHINE_TYPE, 'machine type');
const checkFlag: Check = (value, path) =>
  typeof value === 'boolean' ? undefined : `${path} is neither true nor false`;
const checkOrder: Check = (value, path) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1_000_000
    ? undefined
    : `${path} is not a valid boot order`;

const checkList: Check = (value, path) => {
  if (!Array.isArray(value)) return `${path} is not a list`;
  if (value.length <= MAX_IMPORTED_DEVICES) return undefined;
  return `${path} has ${value.length} entries, more than ${MAX_IMPORTED_DEVICES}`;
};

const checkMapOf =
  (check: Check): Check =>
  (value, path) => {
    if (!isRecord(value)) return `${path} is not a map`;
    const entries = Object.entries(value);
    if (entries.length > MAX_KEYS) return `${path} has more than ${MAX_KEYS} keys`;
    const invalid = entries.find(([key]) => key === '__proto__' || checkWord(key, '') !== undefined);
    if (invalid !== undefined) return `${path} has an invalid key: ${quoteKey(invalid[0])}`;
    return entries.map(([key, child]) => check(child, `${path}.${key}`)).find(isError);
  };

const checkParams =
  (depth: number): Check =>
  (value, path) => {
    if (!isRecord(value)) return checkText(value, path);
    return depth > MAX_DEPTH ? `${path} is nested too deeply` : checkMapOf(checkParams(depth + 1))(value, path);
  };

const DEVICE_FIELDS: Readonly<Record<string, Check>> = {
  id: required(checkPattern(DEVICE_ID, 'id: it must consist of letters, digits, ".", "_", ":" and "-"')),
  type: required(checkWord),
  device: required(checkWord),
  name: optional(checkText),
  address: optional(checkMapOf(checkText)),
  bootOrder: optional(checkOrder),
  managed: optional(checkFlag),
  plugged: optional(checkFlag),
  readonly: optional(checkFlag),
  specParams: optional(checkMapOf(checkParams(1))),
} satisfies Record<Exclude<keyof LearnedDevice, 'specialManaged'>, Check>;

const quoteKey = (key: string) => JSON.stringify(key.length > MAX_TEXT ? `${key.slice(0, MAX_TEXT)}…` : key);

function findDuplicate(devices: readonly LearnedDevice[]): string | undefined {
  const ids = new Set<string>();
  const places = new Map<string, string>();
  for (const device of devices) {
    const { id } = device;
    if (ids.has(id)) return `two devices have the id ${id}`;
    ids.add(id);
    const place = placeOf(device);
    if (place === undefined) continue;
    const other = places.get(place);
    if (other !== undefined) return `the devices ${other} and ${id} have the same address: ${place}`;
    places.set(place, id);
  }
  return undefined;
}

/**
 * Returns the address as text for comparison; undefined if there is none. The address of a drive does not identify its
 * controller; the bus does. If the bus is unknown, only drives of the same kind are compared.
 */
function placeOf({ address = {}, specParams = {}, device }: LearnedDevice): string | undefined {
  const { type, ...parts } = address;
  if (Object.keys(address).length === 0) return undefined;
  if (type === 'pci') {
    const { domain = '0', bus = '0', slot = '0', function: func = '0' } = parts;
    return `pci ${[domain, bus, slot, func].map(plainNumber).join(':')}`;
  }
  const on = type === 'drive' ? [typeof specParams['bus'] === 'string' ? specParams['bus'] : device] : [];
  const rest = Object.entries(parts).map(([key, value]) => `${key}=${plainNumber(value)}`);
  return [type, ...on, ...rest.toSorted()].join(' ');
}

/** Normalizes numbers: `0x01`, `0x1` and `1` are equal. */
function plainNumber(value: string): string {
  const number = value.trim() === '' ? Number.NaN : Number(value);
  return Number.isSafeInteger(number) ? number.toString(16) : value;
}
