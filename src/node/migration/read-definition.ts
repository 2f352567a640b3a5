/**
 * Parses the domain definition that another node sends. It is accepted only if it has exactly the expected shape, because
 * QEMU's arguments are built from it. Its paths are always replaced (retarget.ts). Pure.
 */
import { chassis, smbios } from '#api/domain/chassis.ts';
import { INPUT_BUSES, SOUND_MODELS, WATCHDOG_ACTIONS } from '#api/domain/hardware.ts';
import { VIDEO_TYPES } from '#api/domain/video.ts';
import { isRecord } from '#kube/meta.ts';
import { driverOf } from '#node/definition/devices/other-devices.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';

const MAX_DEVICES = 512;
const MAX_DEPTH = 8;
const MAX_TEXT = 8192;
/** QEMU's syntax of ids. */
const ID = /^[A-Za-z][A-Za-z0-9._-]{0,199}$/;
const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

const text: Check = (value) => typeof value === 'string' && value.length <= MAX_TEXT && !value.includes('\0');
const identifier: Check = (value) => typeof value === 'string' && IDENTIFIER.test(value);
const flag: Check = (value) => typeof value === 'boolean';
const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const oneOf =
  (...known: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && known.includes(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const hasShape =
  (fields: Shape): Check =>
  (value) =>
    isRecord(value) && matches(value, fields);
/** Bounded, because each thread becomes an argument. */
const MAX_THREADS = 1024;
const threads: Check = (value) => count(value) && (value as number) <= MAX_THREADS;
const texts: Check = (value) => isRecord(value) && Object.values(value).every(text);
/** For values that are only reported and never become arguments. */
const plain: Check = (value) => isPlain(value, MAX_DEPTH);

/** Allows only the fields of the schema, because their names become parts of an option. */
const textFields = ({ properties = {} }: { readonly properties?: object }): Shape =>
  Object.fromEntries(Object.keys(properties).map((name) => [name, optional(text)]));

/** Names must not contain a comma, which would start another option. Commas in values are escaped. */
const features: Check = (value) =>
  isRecord(value) &&
  Object.entries(value).every(
    ([key, setting]) => /^[a-z0-9][a-z0-9_.-]{0,62}$/.test(key) && (text(setting) || flag(setting) || count(setting)),
  );

const BASE: Shape = {
  id: (value) => typeof value === 'string' && ID.test(value),
  type: text,
  address: optional(texts),
};

const DEVICES: Readonly<Record<Device['type'], Shape>> = {
  'root-port': { index: count },
  'scsi-controller': { queues: optional(count) },
  'usb-controller': {},
  disk: {
    name: identifier,
    media: oneOf('disk', 'cdrom', 'floppy', 'lun'),
    bus: identifier,
    source: optional(hasShape({ path: text, format: oneOf('raw', 'qcow2') })),
    readonly: flag,
    serial: optional(text),
    cache: identifier,
    bootOrder: optional(count),
    queues: optional(count),
    ioThread: optional(count),
  },
  interface: {
    name: identifier,
    model: identifier,
    macAddress: (value) => typeof value === 'string' && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(value),
    backend: (value) =>
      isRecord(value) &&
      (matches(value, { type: oneOf('user') }) ||
        matches(value, { type: oneOf('bridge'), bridge: identifier }) ||
        // The target replaces it by its own (retarget.ts).
        matches(value, { type: oneOf('pod'), tap: identifier, attachment: plain })),
    bootOrder: optional(count),
    queues: optional(count),
    acpiIndex: optional(count),
    link: optional(oneOf('down')),
  },
  tpm: { model: oneOf('crb', 'tis'), persistent: optional(flag) },
  rng: {},
  balloon: {},
  serial: {},
  video: { model: oneOf(...VIDEO_TYPES) },
  'agent-channel': { controller: (value) => typeof value === 'string' && ID.test(value) },
  input: { name: identifier, bus: oneOf(...INPUT_BUSES) },
  sound: { name: identifier, model: oneOf(...SOUND_MODELS) },
  watchdog: { name: identifier, action: oneOf(...WATCHDOG_ACTIONS) },
  redirection: {},
  other: { driver: identifier, row: (value) => isRecord(value) && plain(value) },
};

const DEFINITION: Shape = {
  id: identifier,
  name: text,
  machine: identifier,
  cpu: hasShape({ model: text, sockets: count, cores: count, threads: count, features: optional(features) }),
  memoryKib: count,
  firmware: hasShape({
    uuid: identifier,
    serial: optional(text),
    smbios: optional(hasShape(textFields(smbios))),
    chassis: optional(hasShape(textFields(chassis))),
    loader: (value) =>
      isRecord(value) &&
      (matches(value, { type: oneOf('bios') }) ||
        matches(value, { type: oneOf('efi'), secureBoot: flag, persistent: optional(flag) })),
  }),
  kernel: optional(hasShape({ kernelPath: text, initrdPath: optional(text), arguments: text })),
  clock: optional(
    hasShape({
      offsetSeconds: optional((value) => Number.isSafeInteger(value)),
      timezone: optional(text),
      hpet: optional(flag),
      pit: optional(flag),
      pitTickPolicy: optional(identifier),
      rtcTickPolicy: optional(identifier),
      rtcTrack: optional(identifier),
    }),
  ),
  ioThreads: optional(threads),
  acpi: flag,
  smm: flag,
  devices: (value) => Array.isArray(value) && value.length <= MAX_DEVICES && value.every(isDevice),
  state: optional(hasShape({ directory: text })),
  network: optional(plain),
};

/** Returns undefined if the value is not a definition, or has unknown fields. */
export function readDefinition(value: unknown): DomainDefinition | undefined {
  if (!isRecord(value) || !matches(value, DEFINITION)) return undefined;
  const definition = value as unknown as DomainDefinition;
  const ids = new Set(definition.devices.map(({ id }) => id));
  return ids.size === definition.devices.length ? definition : undefined;
}

function isDevice(value: unknown): boolean {
  if (!isRecord(value) || typeof value['type'] !== 'string' || !Object.hasOwn(DEVICES, value['type'])) return false;
  if (!matches(value, { ...BASE, ...DEVICES[value['type'] as Device['type']] })) return false;
  const device = value as unknown as Device;
  // The driver must be that of the row.
  return device.type !== 'other' || driverOf(device.row) === device.driver;
}

function matches(value: Readonly<Record<string, unknown>>, fields: Shape): boolean {
  return (
    Object.keys(value).every((key) => Object.hasOwn(fields, key)) &&
    Object.entries(fields).every(([key, check]) => check(Object.hasOwn(value, key) ? value[key] : undefined))
  );
}

function isPlain(value: unknown, depth: number): boolean {
  if (value === undefined || value === null || typeof value === 'boolean' || typeof value === 'number') return true;
  if (typeof value === 'string') return text(value);
  if (depth === 0 || typeof value !== 'object') return false;
  return Object.values(value).every((inner) => isPlain(inner, depth - 1));
}
