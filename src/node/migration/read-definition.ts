/**
 * The definition of a guest as another node tells it. It was complete there; here it is only believed where it has the
 * shape of one, because arguments of a process are made from it. Its paths are replaced in any case (retarget.ts). Pure.
 */
import { chassis, smbios } from '#api/domain/chassis.ts';
import { INPUT_BUSES, SOUND_MODELS, WATCHDOG_ACTIONS } from '#api/domain/hardware.ts';
import { VIDEO_TYPES } from '#api/domain/video.ts';
import { isRecord } from '#kube/meta.ts';
import { driverOf } from '#node/definition/devices/others.ts';
import type { Device, DomainDefinition } from '#node/definition/domain-definition.ts';

const MAX_DEVICES = 512;
const MAX_DEPTH = 8;
const MAX_TEXT = 8192;
/** Of ids in QEMU. */
const ID = /^[A-Za-z][A-Za-z0-9._-]{0,199}$/;
const WORD = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

const text: Check = (value) => typeof value === 'string' && value.length <= MAX_TEXT && !value.includes('\0');
const word: Check = (value) => typeof value === 'string' && WORD.test(value);
const flag: Check = (value) => typeof value === 'boolean';
const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const oneOf =
  (...known: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && known.includes(value);
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const shape =
  (fields: Shape): Check =>
  (value) =>
    isRecord(value) && fits(value, fields);
/** Each becomes an argument of its own. */
const MAX_THREADS = 1024;
const threads: Check = (value) => count(value) && (value as number) <= MAX_THREADS;
const texts: Check = (value) => isRecord(value) && Object.values(value).every(text);
/** What is only told, and never made an argument of. */
const plain: Check = (value) => isPlain(value, MAX_DEPTH);

/** Their names become words of an option: only those that a spec can have. */
const lines = ({ properties = {} }: { readonly properties?: object }): Shape =>
  Object.fromEntries(Object.keys(properties).map((name) => [name, maybe(text)]));

/** Names without a comma, which would begin the next one; values are written so that it does not matter. */
const features: Check = (value) =>
  isRecord(value) &&
  Object.entries(value).every(
    ([key, of]) => /^[a-z0-9][a-z0-9_.-]{0,62}$/.test(key) && (text(of) || flag(of) || count(of)),
  );

const BASE: Shape = { id: (value) => typeof value === 'string' && ID.test(value), type: text, address: maybe(texts) };

const DEVICES: Readonly<Record<Device['type'], Shape>> = {
  'root-port': { index: count },
  'scsi-controller': { queues: maybe(count) },
  'usb-controller': {},
  disk: {
    name: word,
    media: oneOf('disk', 'cdrom', 'floppy', 'lun'),
    bus: word,
    source: maybe(shape({ path: text, format: oneOf('raw', 'qcow2') })),
    readonly: flag,
    serial: maybe(text),
    cache: word,
    bootOrder: maybe(count),
    queues: maybe(count),
    ioThread: maybe(count),
  },
  interface: {
    name: word,
    model: word,
    macAddress: (value) => typeof value === 'string' && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(value),
    backend: (value) =>
      isRecord(value) && (fits(value, { type: oneOf('user') }) || fits(value, { type: oneOf('bridge'), bridge: word })),
    bootOrder: maybe(count),
    queues: maybe(count),
    acpiIndex: maybe(count),
    link: maybe(oneOf('down')),
  },
  tpm: { model: oneOf('crb', 'tis'), persistent: maybe(flag) },
  rng: {},
  balloon: {},
  serial: {},
  video: { model: oneOf(...VIDEO_TYPES) },
  'agent-channel': { controller: (value) => typeof value === 'string' && ID.test(value) },
  input: { name: word, bus: oneOf(...INPUT_BUSES) },
  sound: { name: word, model: oneOf(...SOUND_MODELS) },
  watchdog: { name: word, action: oneOf(...WATCHDOG_ACTIONS) },
  redirection: {},
  other: { driver: word, row: (value) => isRecord(value) && plain(value) },
};

const DEFINITION: Shape = {
  id: word,
  name: text,
  machine: word,
  cpu: shape({ model: text, sockets: count, cores: count, threads: count, features: maybe(features) }),
  memoryKib: count,
  firmware: shape({
    uuid: word,
    serial: maybe(text),
    smbios: maybe(shape(lines(smbios))),
    chassis: maybe(shape(lines(chassis))),
    loader: (value) =>
      isRecord(value) &&
      (fits(value, { type: oneOf('bios') }) ||
        fits(value, { type: oneOf('efi'), secureBoot: flag, persistent: maybe(flag) })),
  }),
  kernel: maybe(shape({ kernelPath: text, initrdPath: maybe(text), arguments: text })),
  clock: maybe(
    shape({
      offsetSeconds: maybe((value) => Number.isSafeInteger(value)),
      timezone: maybe(text),
      hpet: maybe(flag),
      pit: maybe(flag),
      pitTickPolicy: maybe(word),
      rtcTickPolicy: maybe(word),
      rtcTrack: maybe(word),
    }),
  ),
  ioThreads: maybe(threads),
  acpi: flag,
  smm: flag,
  devices: (value) => Array.isArray(value) && value.length <= MAX_DEVICES && value.every(isDevice),
  state: maybe(shape({ directory: text })),
};

/** Undefined where it is none, or has anything that we do not know. */
export function readDefinition(value: unknown): DomainDefinition | undefined {
  if (!isRecord(value) || !fits(value, DEFINITION)) return undefined;
  const definition = value as unknown as DomainDefinition;
  const ids = new Set(definition.devices.map(({ id }) => id));
  return ids.size === definition.devices.length ? definition : undefined;
}

function isDevice(value: unknown): boolean {
  if (!isRecord(value) || typeof value['type'] !== 'string' || !Object.hasOwn(DEVICES, value['type'])) return false;
  if (!fits(value, { ...BASE, ...DEVICES[value['type'] as Device['type']] })) return false;
  const device = value as unknown as Device;
  // The driver of a known row, and no other.
  return device.type !== 'other' || driverOf(device.row) === device.driver;
}

function fits(value: Readonly<Record<string, unknown>>, fields: Shape): boolean {
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
