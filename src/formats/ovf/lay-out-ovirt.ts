/**
 * Addresses for machines of oVirt whose OVF has none, as their hosts had them laid out by libvirt. Up to 3.0 OVFs name no
 * devices besides disks, interfaces and monitors, although every machine had more: what the engine and the hosts of 3.0
 * added is added here, because libvirt counted it. Facts and their sources: ADR 19. Pure.
 */
import type { Chipset } from '#api/chipset.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { Findings } from '#formats/faults.ts';
import { knowsAddresses, layOutImported } from '#formats/lay-out-imported.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import { childNamed } from '#lib/xml.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

/** Machines of others never ran on libvirt as far as we know, and those of ours have a layout of their own (ADR 10). */
export function layOutOvirt<T extends Devices>(
  devices: T,
  envelope: Envelope,
  chipset: Chipset | undefined,
  findings: Findings,
): T {
  if (envelope.product !== 'oVirt') return devices;
  const isOld = isBefore31(envelope.version);
  const isFirstRun = !knowsAddresses(devices);
  const complete = isOld
    ? { ...devices, rows: [...devices.rows, ...hostHardware(devices, envelope, findings)] }
    : devices;
  const targets = targetsOf(devices, isOld);
  return layOutImported(complete, { chipset, targets, hasAgentChannel: isFirstRun }, findings);
}

export function isBefore31(version: string | undefined): boolean {
  const [major = 0, minor = 0] = (version ?? '3.1').split('.').map(Number);
  return major < 3 || (major === 3 && minor < 1);
}

/** Desktops with these systems had an AC97 card, all others an ICH6. */
const AC97_SYSTEMS: ReadonlySet<string> = new Set([
  ...['WindowsXP', 'Windows2003x64', 'RHEL3', 'RHEL3x64', 'RHEL4', 'RHEL4x64', 'OtherLinux', 'Other'],
]);
const DESKTOP = '0';

/** The devices that hosts of 3.0 gave to a machine without being told by its OVF. None of them had a balloon. */
function hostHardware({ rows }: Devices, { settings, operatingSystem }: Envelope, findings: Findings): LearnedDevice[] {
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
    findings.note(`machines of oVirt 3.0 had devices that their OVF does not name; it gets them: ${names}`);
  }
  return added;
}

const CDROM_INDEX = 2;
/** The third place is that of the CD-ROM drive, which every machine had. */
const IDE_INDEXES = [0, 1, 3, CDROM_INDEX];

/**
 * The names of targets that hosts of oVirt gave to disks: the CD-ROM drive is hdc (or sdc), the disk that boots is the
 * first, and the others follow by name. Up to 3.0 names were compared as texts, so that 10 came before 2.
 */
function targetsOf({ disks }: Devices, isOld: boolean): ReadonlyMap<string, number> {
  const compare = isOld ? byText : () => 0;
  const sorted = disks.filter(({ plugged }) => plugged).toSorted((a, b) => orderOf(a) - orderOf(b) || compare(a, b));
  const indexes = new Map<string, number>();
  const taken = new Set<string>();
  for (const disk of [...sorted.filter(isDrive), ...sorted.filter((other) => !isDrive(other))]) {
    const row = rowOf(disk);
    const candidates = disk.bus === 'ide' ? (isDrive(disk) ? [CDROM_INDEX, 3, 1, 0] : IDE_INDEXES) : counting(disk);
    for (const index of candidates) {
      if (taken.has(`${row}${index}`)) continue;
      taken.add(`${row}${index}`);
      indexes.set(disk.id, index);
      break;
    }
  }
  return indexes;
}

function isDrive({ media }: DescribedDisk): boolean {
  return media === 'cdrom';
}

/** sata, scsi and usb disks share one row of names. */
function rowOf({ bus }: DescribedDisk): string {
  return bus === 'sata' || bus === 'scsi' || bus === 'usb' ? 'sd' : bus;
}

function* counting(disk: DescribedDisk): Iterable<number> {
  if (isDrive(disk)) yield CDROM_INDEX;
  for (let index = 0; ; index++) yield index;
}

function orderOf({ bootOrder }: DescribedDisk): number {
  return bootOrder ?? Number.MAX_SAFE_INTEGER;
}

function byText(a: DescribedDisk, b: DescribedDisk): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
