/**
 * Converts between oVirt's boot string (`boot: 'cdn'`), which orders groups of devices, and the boot order of each
 * device. c is the disk, d the CD-ROM, n the network, a the floppy. Pure.
 */

export interface BootDevice {
  readonly type: string;
  readonly device: string;
  readonly name?: string | undefined;
  /** True for a disk that is marked as boot disk. */
  readonly isBootDisk?: boolean | undefined;
  readonly managed?: boolean | undefined;
  readonly plugged?: boolean | undefined;
  readonly bootOrder?: number | undefined;
}

const LETTERS = 'cdna';
const byName = new Intl.Collator('en', { numeric: true });

export function checkBootString(boot: string): string | undefined {
  const isValid = [...boot].every((letter) => LETTERS.includes(letter)) && new Set(boot).size === boot.length;
  return isValid
    ? undefined
    : `boot: ${JSON.stringify(boot)}; expected c (disk), d (CD-ROM), n (network) and a (floppy), each at most once`;
}

/** Returns the boot order of each device, starting at 1; 0 for devices that are not booted from. */
export function bootOrders(boot: string, devices: readonly BootDevice[]): readonly number[] {
  const orders = new Map<BootDevice, number>();
  for (const letter of boot) for (const device of devicesOfGroup(letter, devices)) orders.set(device, orders.size + 1);
  return devices.map((device) => orders.get(device) ?? 0);
}

/** Returns the boot string that is closest to the boot orders of the devices. */
export function bootString(devices: readonly BootDevice[]): string {
  const booted = devices.filter(({ bootOrder = 0 }) => bootOrder > 0);
  const sorted = booted.toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0));
  return [...new Set(sorted.map(letterOf))].join('');
}

/**
 * Returns the devices of one group in boot order. Network interfaces are sorted by name. Of the disks, only those that
 * are marked as boot disks count; if none is marked, the first disk.
 */
function devicesOfGroup(letter: string, devices: readonly BootDevice[]): readonly BootDevice[] {
  const group = devices.filter((device) => canBoot(device) && letterOf(device) === letter);
  if (letter === 'n') return group.toSorted((a, b) => byName.compare(a.name ?? '', b.name ?? ''));
  if (letter !== 'c') return group;
  const marked = group.filter(({ isBootDisk }) => isBootDisk === true);
  return marked.length > 0 ? marked : group.slice(0, 1);
}

function canBoot({ managed, plugged }: BootDevice): boolean {
  return managed !== false && plugged !== false;
}

function letterOf({ type, device }: BootDevice): string {
  if (type === 'interface') return 'n';
  if (type !== 'disk') return '';
  if (device === 'cdrom') return 'd';
  return device === 'floppy' ? 'a' : 'c';
}
