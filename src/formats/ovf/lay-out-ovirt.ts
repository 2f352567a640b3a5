/**
 * Assigns addresses to machines of oVirt whose OVF has none, as libvirt did on their hosts. OVFs up to 3.0 name only
 * disks, interfaces and monitors. The other devices that engine and hosts of 3.0 gave to every machine are added here,
 * because they affect libvirt's layout. ADR 19 has the facts and their sources. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { Findings } from '#formats/findings.ts';
import { hasAddresses, layOutImported } from '#formats/lay-out-imported.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import { childNamed } from '#lib/xml/xml.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

/**
 * Returns the devices of other products unchanged: they did not run on libvirt, and our own have their own layout (ADR
 * 10).
 */
export function layOutOvirt<T extends Devices>(
  devices: T,
  envelope: Envelope,
  chipset: Chipset | undefined,
  findings: Findings,
): T {
  if (envelope.product !== 'oVirt') return devices;
  const isOld = isBefore31(envelope.version);
  const isFirstRun = !hasAddresses(devices);
  const complete = isOld
    ? { ...devices, rows: [...devices.rows, ...findHostHardware(devices, envelope, findings)] }
    : devices;
  const targets = assignTargetIndexes(devices, isOld);
  return layOutImported(complete, { chipset, targets, hasAgentChannel: isFirstRun }, findings);
}

export function isBefore31(version: string | undefined): boolean {
  const [major = 0, minor = 0] = (version ?? '3.1').split('.').map(Number);
  return major < 3 || (major === 3 && minor < 1);
}

/** Desktops with these operating systems had an AC97 card, all others an ICH6. */
const AC97_SYSTEMS: ReadonlySet<string> = new Set([
  ...['WindowsXP', 'Windows2003x64', 'RHEL3', 'RHEL3x64', 'RHEL4', 'RHEL4x64', 'OtherLinux', 'Other'],
]);
const DESKTOP = '0';

/**
 * Returns the devices that hosts of 3.0 added to every machine although its OVF does not name them. There was no
 * balloon.
 */
function findHostHardware(
  { rows }: Devices,
  { settings, operatingSystem }: Envelope,
  findings: Findings,
): LearnedDevice[] {
  const has = (type: string, device?: string) =>
    rows.some((row) => row.type === type && (device === undefined || row.device === device));
  const system = childNamed(operatingSystem, 'Description')?.text.trim() ?? '';
  const isDesktop = settings.get('vmtype')?.text.trim() === DESKTOP;
  const card = AC97_SYSTEMS.has(system) ? 'ac97' : 'ich6';
  const added: LearnedDevice[] = [
    ...(isDesktop && !has('sound') ? [{ id: 'sound0', type: 'sound', device: card, managed: true }] : []),
    ...(has('controller', 'virtio-serial')
      ? []
      : [{ id: 'virtio-serial0', type: 'controller', device: 'virtio-serial', managed: false }]),
  ];
  if (added.length > 0) {
    const names = added.map(({ type, device }) => `${type} ${device}`).join(', ');
    findings.addNote(`machines of oVirt 3.0 had devices that their OVF does not name; added: ${names}`);
  }
  return added;
}

const CDROM_INDEX = 2;
/** The third index belongs to the CD-ROM drive, which every machine had. */
const IDE_INDEXES = [0, 1, 3, CDROM_INDEX];

/**
 * Assigns the target indexes that oVirt's hosts gave to disks: the CD-ROM drive is hdc (or sdc), the boot disk is the
 * first, and the others follow by name. Up to 3.0, names were compared as text, so that 10 came before 2.
 */
function assignTargetIndexes({ disks }: Devices, isOld: boolean): ReadonlyMap<string, number> {
  const compare = isOld ? compareAsText : () => 0;
  const sorted = disks.filter(({ plugged }) => plugged).toSorted((a, b) => orderOf(a) - orderOf(b) || compare(a, b));
  const indexes = new Map<string, number>();
  const used = new Set<string>();
  for (const disk of [...sorted.filter(isCdrom), ...sorted.filter((other) => !isCdrom(other))]) {
    const prefix = namePrefix(disk);
    const candidates =
      disk.bus === 'ide' ? (isCdrom(disk) ? [CDROM_INDEX, 3, 1, 0] : IDE_INDEXES) : candidateIndexes(disk);
    for (const index of candidates) {
      if (used.has(`${prefix}${index}`)) continue;
      used.add(`${prefix}${index}`);
      indexes.set(disk.id, index);
      break;
    }
  }
  return indexes;
}

function isCdrom({ media }: DescribedDisk): boolean {
  return media === 'cdrom';
}

/** Returns the prefix of the disk's name in libvirt. sata, scsi and usb disks share the prefix sd. */
function namePrefix({ bus }: DescribedDisk): string {
  return bus === 'sata' || bus === 'scsi' || bus === 'usb' ? 'sd' : bus;
}

function* candidateIndexes(disk: DescribedDisk): Iterable<number> {
  if (isCdrom(disk)) yield CDROM_INDEX;
  for (let index = 0; ; index++) yield index;
}

function orderOf({ bootOrder }: DescribedDisk): number {
  return bootOrder ?? Number.MAX_SAFE_INTEGER;
}

function compareAsText(a: DescribedDisk, b: DescribedDisk): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
