/**
 * Defines the recorded devices that the spec does not ask for: those found in the guest or brought by an import. They
 * are passed back at each start, so that the guest keeps them. Unsupported hardware is left out, with a note.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { isFixedDeviceId, VIDEO_ID, WATCHDOG_ID } from '#api/devices/fixed-devices.ts';
import type { Fixture } from '#node/definition/addresses/layout.ts';
import { pciAddressFromMap, formatAnyAddress } from '#api/devices/pci-address.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { OtherDevice } from '#node/hardware/domain-definition.ts';

type Row = Pick<LearnedDevice, 'type' | 'device' | 'specParams'>;

interface Hardware {
  /** QEMU's name. */
  readonly driver: string;
  readonly fixture: Fixture;
  /** The hardware that the guest gets instead, for the note. */
  readonly replacement?: string;
}

/** Keyed by type and device, and after a colon the model if that matters. */
const HARDWARE: ReadonlyMap<string, Hardware> = new Map<string, Hardware>([
  ['controller/virtio-serial', { driver: 'virtio-serial-pci', fixture: 'virtio-serial' }],
  ['controller/usb:qemu-xhci', { driver: 'qemu-xhci', fixture: 'usb' }],
  ['controller/usb:nec-xhci', { driver: 'nec-usb-xhci', fixture: 'usb' }],
  ['controller/usb:ich9-ehci1', { driver: 'ich9-usb-ehci1', fixture: 'usb' }],
  ['sound/ich6', { driver: 'intel-hda', fixture: 'sound' }],
  ['sound/ich9', { driver: 'ich9-intel-hda', fixture: 'sound' }],
  ['sound/ac97', { driver: 'AC97', fixture: 'sound' }],
  ['video/vga', { driver: 'VGA', fixture: 'video' }],
  ['video/qxl', { driver: 'VGA', fixture: 'video', replacement: 'a standard VGA at the same address' }],
  ['video/cirrus', { driver: 'cirrus-vga', fixture: 'video' }],
  ['video/bochs', { driver: 'bochs-display', fixture: 'video' }],
  ['watchdog/i6300esb', { driver: 'i6300esb', fixture: 'watchdog' }],
  ['watchdog/watchdog:i6300esb', { driver: 'i6300esb', fixture: 'watchdog' }],
]);

/** Types that the spec decides, or that are not hardware. */
const DEFINED_ELSEWHERE: ReadonlySet<string> = new Set([
  'disk',
  'interface',
  'tpm',
  'console',
  'graphics',
  'balloon',
  'rng',
]);

/** Devices that are part of the machine or of the layout. */
const BUILT_IN: ReadonlySet<string> = new Set([
  'controller/pcie-root-port',
  'controller/ide',
  'controller/sata',
  'controller/fdc',
  'controller/usb:piix3-uhci',
  'controller/pci:pci-root',
  'controller/pci:pcie-root',
  'controller/pci:pcie-root-port',
]);

/** QEMU's rule for ids. */
const ID = /^[A-Za-z][A-Za-z0-9._-]{0,127}$/;
/**
 * Ids of devices that a spec can ask for, now or later, or that are part of the layout; and ids after which QEMU would
 * name the bus of a controller like a bus of the machine (`pcie.0`).
 */
const RESERVED_ID = /^(?:(?:disk|nic)-.*|rp\d+|(?:scsi|rng|balloon|tpm|serial|xhci)0|pcie?|ide|isa|floppy-bus)$/;

export function fixtureOf(row: Row): Fixture | undefined {
  return hardwareOf(row)?.fixture;
}

/** Returns QEMU's name of the hardware of a row, or undefined if we do not support it. */
export function driverOf(row: Row): string | undefined {
  return hardwareOf(row)?.driver;
}

interface OtherDevices {
  readonly devices: readonly UnplacedDevice<OtherDevice>[];
  /** Sentences for users about rows that the guest does not get unchanged. */
  readonly notes: readonly string[];
}

/** Defines the devices of the rows. `ownIds` are the ids of the devices that the spec asks for. */
export function defineOtherDevices(rows: readonly LearnedDevice[], ownIds: ReadonlySet<string>): OtherDevices {
  const devices: UnplacedDevice<OtherDevice>[] = [];
  const notes: string[] = [];
  for (const row of rows) {
    if (row.plugged === false || ownIds.has(row.id) || isFixedDeviceId(row.id) || DEFINED_ELSEWHERE.has(row.type))
      continue;
    // Two video cards would both use the addresses of the one VGA card of a PC.
    if (row.type === 'video' && ownIds.has(VIDEO_ID)) continue;
    if (row.type === 'watchdog' && ownIds.has(WATCHDOG_ID)) continue;
    if (lookupNames(row).some((name) => BUILT_IN.has(name))) continue;
    const hardware = hardwareOf(row);
    const reason = hardware === undefined ? 'this hardware is not supported' : checkRow(row);
    if (hardware === undefined || reason !== undefined) {
      notes.push(`${describeRow(row)} is left out: ${reason}.`);
      continue;
    }
    if (hardware.replacement !== undefined) notes.push(`${describeRow(row)} is replaced with ${hardware.replacement}.`);
    devices.push({ device: toOtherDevice(row, hardware.driver), field: `status.devices[${row.id}]` });
  }
  return { devices, notes };
}

function hardwareOf(row: Row): Hardware | undefined {
  for (const name of lookupNames(row)) {
    const hardware = HARDWARE.get(name);
    if (hardware !== undefined) return hardware;
  }
  return undefined;
}

function lookupNames({ type, device, specParams }: Row): readonly string[] {
  const model = specParams?.['model'];
  const name = `${type}/${device}`;
  return typeof model === 'string' ? [`${name}:${model}`, name] : [name];
}

/** Returns why supported hardware cannot be passed back unchanged, or undefined if it can. */
function checkRow({ id, address }: LearnedDevice): string | undefined {
  if (!ID.test(id)) return 'its id is not valid in QEMU';
  if (RESERVED_ID.test(id)) return 'its id is reserved for another device';
  const pci = address && pciAddressFromMap(address);
  // A guest looks for further functions only if there is function 0, which we would have to add.
  return pci !== undefined && pci.function !== 0 ? 'multifunction devices are not supported' : undefined;
}

/** Converts a row to a device. A special managed device counts as unmanaged on the node. */
function toOtherDevice(row: LearnedDevice, driver: string): OtherDevice {
  const { id, type, device, specParams } = row;
  const managed = row.specialManaged === true ? false : row.managed;
  return {
    type: 'other',
    id,
    driver,
    row: { type, device, ...(managed !== undefined && { managed }), ...(specParams !== undefined && { specParams }) },
  };
}

function describeRow({ id, type, device, specParams, address }: LearnedDevice): string {
  const model = specParams?.['model'];
  const kind = typeof model === 'string' ? `${type}/${device}, model ${model}` : `${type}/${device}`;
  return `Device "${id}" (${kind}${address === undefined ? '' : ` at ${formatAnyAddress(address)}`})`;
}
