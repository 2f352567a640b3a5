/**
 * `boot: 'cdn'`: groups of devices in the order in which a guest of old tries them, against the order of each single
 * device. c is the disk, d the CD-ROM, n the network, a the floppy. Pure, both ways.
 */

export interface BootDevice {
  readonly type: string;
  readonly device: string;
  readonly name?: string | undefined;
  /** A disk that is marked as the one to boot from. */
  readonly boots?: boolean | undefined;
  readonly managed?: boolean | undefined;
  readonly plugged?: boolean | undefined;
  readonly bootOrder?: number | undefined;
}

const LETTERS = 'cdna';
const byName = new Intl.Collator('en', { numeric: true });

export function bootFault(boot: string): string | undefined {
  const isGood = [...boot].every((letter) => LETTERS.includes(letter)) && new Set(boot).size === boot.length;
  return isGood
    ? undefined
    : `boot: ${JSON.stringify(boot)} is no boot order; expected c (disk), d (CD-ROM) and n (network), each once`;
}

/** The place of each device in the boot order, from 1 on; 0 for what is not booted from. */
export function bootOrders(boot: string, devices: readonly BootDevice[]): readonly number[] {
  const orders = new Map<BootDevice, number>();
  for (const letter of boot) for (const device of groupOf(letter, devices)) orders.set(device, orders.size + 1);
  return devices.map((device) => orders.get(device) ?? 0);
}

/** The string that comes nearest to the orders of the devices. */
export function bootString(devices: readonly BootDevice[]): string {
  const booted = devices.filter(({ bootOrder = 0 }) => bootOrder > 0);
  const sorted = booted.toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0));
  return [...new Set(sorted.map(letterOf))].join('');
}

/** Network interfaces go by their names. One disk is booted from whether it is marked or not, of several the marked ones. */
function groupOf(letter: string, devices: readonly BootDevice[]): readonly BootDevice[] {
  const group = devices.filter((device) => canBoot(device) && letterOf(device) === letter);
  if (letter === 'n') return group.toSorted((a, b) => byName.compare(a.name ?? '', b.name ?? ''));
  if (letter !== 'c') return group;
  const marked = group.filter(({ boots }) => boots === true);
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
