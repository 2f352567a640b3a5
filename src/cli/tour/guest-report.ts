/** Parses the reports of the built-in guest on its serial console (guest/init). */

interface GuestDisk {
  readonly name: string;
  readonly pci: string;
  readonly serial: string;
  readonly sectors: number;
  readonly readonly: boolean;
}

interface GuestNic {
  readonly name: string;
  readonly pci: string;
  readonly mac: string;
  readonly driver: string;
}

export interface GuestReport {
  /** uuid, serial, machine, bios, cpus, memory, tpm, efi, rng, bootid ... */
  readonly facts: Readonly<Record<string, string>>;
  readonly pci: readonly string[];
  readonly disks: readonly GuestDisk[];
  readonly nics: readonly GuestNic[];
  /** SHA-256 of each file of a cloud-init disk. */
  readonly cloudInit: Readonly<Record<string, string>>;
}

/** Returns the newest complete report with this tag, or undefined. */
export function lastReport(console: string, tag = 'boot'): GuestReport | undefined {
  const end = console.lastIndexOf(`GUEST END ${tag}`);
  const begin = console.lastIndexOf(`GUEST BEGIN ${tag}`, end);
  if (end < 0 || begin < 0) return undefined;
  return parseReport(console.slice(begin, end));
}

function parseReport(text: string): GuestReport {
  const facts: Record<string, string> = {};
  const cloudInit: Record<string, string> = {};
  const [pci, disks, nics]: [string[], GuestDisk[], GuestNic[]] = [[], [], []];
  // Heartbeats may be interspersed, and the console ends lines with \r\n.
  for (const [, key = '', value = ''] of text.matchAll(/^GUEST (\S+) ?([^\r\n]*)/gm)) {
    const [name = '', ...rest] = value.split(' ');
    if (key === 'pci') pci.push(name);
    else if (key === 'disk') disks.push(diskOf(name, rest));
    else if (key === 'nic') nics.push(nicOf(name, rest));
    else if (key === 'cloudinit') cloudInit[rest[0] ?? ''] = rest[1] ?? '';
    else facts[key] = value;
  }
  return { facts, pci, disks, nics, cloudInit };
}

function diskOf(name: string, words: readonly string[]): GuestDisk {
  const { pci = '', serial = '', sectors = '', ro = '' } = pairs(words);
  return { name, pci, serial, sectors: Number(sectors), readonly: ro === '1' };
}

function nicOf(name: string, words: readonly string[]): GuestNic {
  const { pci = '', mac = '', driver = '' } = pairs(words);
  return { name, pci, mac, driver };
}

function pairs(words: readonly string[]): Partial<Record<string, string>> {
  return Object.fromEntries(words.map((word) => word.split('=', 2) as [string, string]));
}
