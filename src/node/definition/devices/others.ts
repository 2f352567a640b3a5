/**
 * Hardware that no spec asks for: what a VM was found with, or brought from another manager. It is passed back from the
 * record at each start, so that the guest keeps it, as far as we know how to make it; the rest is left out and told.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import { isFixtureId, VIDEO_ID, WATCHDOG_ID } from '#api/fixtures.ts';
import type { Fixture } from '#node/definition/addresses/layout.ts';
import { pciAddressFromMap, printAddress } from '#api/pci-address.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { OtherDevice } from '#node/definition/domain-definition.ts';

type Row = Pick<LearnedDevice, 'type' | 'device' | 'specParams'>;

interface Hardware {
  /** QEMU's name of it. */
  readonly driver: string;
  readonly fixture: Fixture;
  /** What the guest gets in its stead. */
  readonly instead?: string;
}

/** By type and device, with the model behind a colon where that decides. */
const KNOWN: ReadonlyMap<string, Hardware> = new Map<string, Hardware>([
  ['controller/virtio-serial', { driver: 'virtio-serial-pci', fixture: 'virtio-serial' }],
  ['controller/usb:qemu-xhci', { driver: 'qemu-xhci', fixture: 'usb' }],
  ['controller/usb:nec-xhci', { driver: 'nec-usb-xhci', fixture: 'usb' }],
  ['controller/usb:ich9-ehci1', { driver: 'ich9-usb-ehci1', fixture: 'usb' }],
  ['sound/ich6', { driver: 'intel-hda', fixture: 'sound' }],
  ['sound/ich9', { driver: 'ich9-intel-hda', fixture: 'sound' }],
  ['sound/ac97', { driver: 'AC97', fixture: 'sound' }],
  ['video/vga', { driver: 'VGA', fixture: 'video' }],
  ['video/qxl', { driver: 'VGA', fixture: 'video', instead: 'a standard VGA at the same place' }],
  ['video/cirrus', { driver: 'cirrus-vga', fixture: 'video' }],
  ['video/bochs', { driver: 'bochs-display', fixture: 'video' }],
  ['watchdog/i6300esb', { driver: 'i6300esb', fixture: 'watchdog' }],
  ['watchdog/watchdog:i6300esb', { driver: 'i6300esb', fixture: 'watchdog' }],
]);

/** What the spec decides on, or what is no hardware of its own. */
const ELSEWHERE: ReadonlySet<string> = new Set(['disk', 'interface', 'tpm', 'console', 'graphics', 'balloon', 'rng']);

/** What comes with the machine, or with the layout. */
const WITH_THE_MACHINE: ReadonlySet<string> = new Set([
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
 * Of devices that a spec can ask for, now or later, or that come with the layout; and what QEMU would name the bus of a
 * controller after (`pcie.0`), where the machine has a bus of that name.
 */
const OWN_ID = /^(?:(?:disk|nic)-.*|rp\d+|(?:scsi|rng|balloon|tpm|serial|xhci)0|pcie?|ide|isa|floppy-bus)$/;

export function fixtureOf(row: Row): Fixture | undefined {
  return hardwareOf(row)?.fixture;
}

/** QEMU's name of what a row stands for; undefined where we do not know how to make it. */
export function driverOf(row: Row): string | undefined {
  return hardwareOf(row)?.driver;
}

export interface Others {
  readonly devices: readonly Unplaced<OtherDevice>[];
  /** What the guest does not have as the rows have it: sentences for people. */
  readonly notes: readonly string[];
}

/** `ownIds` are those of the devices that the spec asks for. */
export function defineOthers(rows: readonly LearnedDevice[], ownIds: ReadonlySet<string>): Others {
  const devices: Unplaced<OtherDevice>[] = [];
  const notes: string[] = [];
  for (const row of rows) {
    if (row.plugged === false || ownIds.has(row.id) || isFixtureId(row.id) || ELSEWHERE.has(row.type)) continue;
    // Two cards would both answer where a PC has one.
    if (row.type === 'video' && ownIds.has(VIDEO_ID)) continue;
    if (row.type === 'watchdog' && ownIds.has(WATCHDOG_ID)) continue;
    if (namesOf(row).some((name) => WITH_THE_MACHINE.has(name))) continue;
    const hardware = hardwareOf(row);
    const reason = hardware === undefined ? 'no such hardware is known here' : whyNot(row);
    if (hardware === undefined || reason !== undefined) {
      notes.push(`${nameOf(row)} is left out: ${reason}.`);
      continue;
    }
    if (hardware.instead !== undefined) notes.push(`${nameOf(row)} is ${hardware.instead}.`);
    devices.push({ device: deviceOf(row, hardware.driver), field: `status.devices[${row.id}]` });
  }
  return { devices, notes };
}

function hardwareOf(row: Row): Hardware | undefined {
  for (const name of namesOf(row)) {
    const hardware = KNOWN.get(name);
    if (hardware !== undefined) return hardware;
  }
  return undefined;
}

function namesOf({ type, device, specParams }: Row): readonly string[] {
  const model = specParams?.['model'];
  const name = `${type}/${device}`;
  return typeof model === 'string' ? [`${name}:${model}`, name] : [name];
}

/** Why hardware that is known cannot be passed back as it was. */
function whyNot({ id, address }: LearnedDevice): string | undefined {
  if (!ID.test(id)) return 'its id cannot be one in QEMU';
  if (OWN_ID.test(id)) return 'its id is that of another device';
  const pci = address && pciAddressFromMap(address);
  // A guest looks for further functions only where there is a first one, which we would have to make, too.
  return pci !== undefined && pci.function !== 0 ? 'devices of several functions are not supported' : undefined;
}

/** A device that is managed only because a list of the cluster names it is unmanaged for the node. */
function deviceOf(row: LearnedDevice, driver: string): OtherDevice {
  const { id, type, device, specParams } = row;
  const managed = row.specialManaged === true ? false : row.managed;
  return {
    type: 'other',
    id,
    driver,
    row: { type, device, ...(managed !== undefined && { managed }), ...(specParams !== undefined && { specParams }) },
  };
}

function nameOf({ id, type, device, specParams, address }: LearnedDevice): string {
  const model = specParams?.['model'];
  const kind = typeof model === 'string' ? `${type}/${device}, model ${model}` : `${type}/${device}`;
  return `Device "${id}" (${kind}${address === undefined ? '' : ` at ${printAddress(address)}`})`;
}
