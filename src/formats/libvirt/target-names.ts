/** Names of disks for libvirt: vda, sdb, hdc. With IDE and floppies the name is the place, so it follows the address. Pure. */
import type { DeviceAddress } from '#api/learned-device.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';

const PREFIXES: Readonly<Record<DescribedDisk['bus'], string>> = {
  virtio: 'vd',
  scsi: 'sd',
  sata: 'sd',
  ide: 'hd',
  fdc: 'fd',
  usb: 'sd',
};

export function targetNames({ disks, rows }: MachineDescription): ReadonlyMap<string, string> {
  const addresses = new Map(rows.map(({ id, address }) => [id, address]));
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const give = (id: string, name: string) => {
    taken.add(name);
    names.set(id, name);
  };
  for (const { id, bus } of disks) {
    const index = placeIndex(bus, addresses.get(id));
    const name = index === undefined ? undefined : PREFIXES[bus] + letters(index);
    if (name !== undefined && !taken.has(name)) give(id, name);
  }
  for (const { id, bus } of disks) {
    if (names.has(id)) continue;
    let index = 0;
    while (taken.has(PREFIXES[bus] + letters(index))) index++;
    give(id, PREFIXES[bus] + letters(index));
  }
  return names;
}

function placeIndex(bus: DescribedDisk['bus'], address: DeviceAddress | undefined): number | undefined {
  if ((bus !== 'ide' && bus !== 'fdc') || address === undefined || address['type'] !== 'drive') return undefined;
  const index = Number(address['bus'] ?? 0) * 2 + Number(address['unit'] ?? 0);
  return Number.isSafeInteger(index) && index >= 0 && index < 26 ? index : undefined;
}

/** a ... z, aa, ab ... */
function letters(index: number): string {
  const rest = Math.floor(index / 26) - 1;
  return (rest >= 0 ? letters(rest) : '') + String.fromCharCode(0x61 + (index % 26));
}
