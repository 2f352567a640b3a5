/**
 * Assigns libvirt's names of disks: vda, sdb, hdc. On IDE and floppy controllers the name follows from the address.
 * Pure.
 */
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';

const PREFIXES: Readonly<Record<DescribedDisk['bus'], string>> = {
  virtio: 'vd',
  scsi: 'sd',
  sata: 'sd',
  ide: 'hd',
  fdc: 'fd',
  usb: 'sd',
};

export function assignTargetNames({ disks, rows }: MachineDescription): ReadonlyMap<string, string> {
  const addresses = new Map(rows.map(({ id, address }) => [id, address]));
  const names = new Map<string, string>();
  const used = new Set<string>();
  const assign = (id: string, name: string) => {
    used.add(name);
    names.set(id, name);
  };
  for (const { id, bus } of disks) {
    const index = placeIndex(bus, addresses.get(id));
    const name = index === undefined ? undefined : PREFIXES[bus] + toLetters(index);
    if (name !== undefined && !used.has(name)) assign(id, name);
  }
  for (const { id, bus } of disks) {
    if (names.has(id)) continue;
    let index = 0;
    while (used.has(PREFIXES[bus] + toLetters(index))) index++;
    assign(id, PREFIXES[bus] + toLetters(index));
  }
  return names;
}

function placeIndex(bus: DescribedDisk['bus'], address: DeviceAddress | undefined): number | undefined {
  if ((bus !== 'ide' && bus !== 'fdc') || address === undefined || address['type'] !== 'drive') return undefined;
  const index = Number(address['bus'] ?? 0) * 2 + Number(address['unit'] ?? 0);
  return Number.isSafeInteger(index) && index >= 0 && index < 26 ? index : undefined;
}

/** Returns the letters of an index: a ... z, aa, ab ... */
function toLetters(index: number): string {
  const rest = Math.floor(index / 26) - 1;
  return (rest >= 0 ? toLetters(rest) : '') + String.fromCharCode(0x61 + (index % 26));
}
