/**
 * Places of disks on their controllers as libvirt gives them out: by the name of the disk's target, so that hdc is the
 * first unit of the second bus of the IDE controller. Pure.
 */
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import { textIn } from '#api/libvirt-layout/hardware.ts';

/** Names of targets begin with these; sata, scsi and usb disks share one row of names. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  ['virtio', 'vd'],
  ['ide', 'hd'],
  ['fdc', 'fd'],
  ['sata', 'sd'],
  ['scsi', 'sd'],
  ['usb', 'sd'],
]);

const TARGET = /^(?:fd|hd|vd|sd|xvd)([a-z]{1,4})[0-9]*$/;
const LETTERS = 26;

/** Returns 1 for `vdb` and 26 for `vdaa`, or undefined for what is no name of a target. */
export function targetIndex(name: string): number | undefined {
  const letters = TARGET.exec(name)?.[1];
  if (letters === undefined) return undefined;
  return [...letters].reduce((index, letter) => (index + 1) * LETTERS + letter.charCodeAt(0) - 97, -1);
}

/** Returns the index of every disk: the given one, or the lowest of its row of names that no other disk has. */
export function targetIndexes(
  disks: readonly LearnedDevice[],
  given: ReadonlyMap<string, number> = new Map(),
): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  const taken = new Set<string>();
  const give = (disk: LearnedDevice, index: number) => {
    indexes.set(disk.id, index);
    taken.add(nameOf(disk, index));
  };
  for (const disk of disks) {
    const index = given.get(disk.id);
    if (index !== undefined) give(disk, index);
  }
  for (const disk of disks) {
    if (indexes.has(disk.id)) continue;
    let index = 0;
    while (taken.has(nameOf(disk, index))) index++;
    give(disk, index);
  }
  return indexes;
}

function nameOf(disk: LearnedDevice, index: number): string {
  const bus = diskBusOf(disk);
  return `${PREFIXES.get(bus) ?? bus}${index}`;
}

export function diskBusOf(disk: LearnedDevice): string {
  return disk.device === 'floppy' ? 'fdc' : (textIn(disk, 'bus') ?? '');
}

/** Units of a controller: libvirt leaves the eighth unit of SCSI to the controller itself and uses a second one. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['ide', 4],
  ['fdc', 2],
  ['sata', 6],
  ['scsi', 7],
]);
const UNITS_PER_IDE_BUS = 2;

/** Returns undefined for buses that are numbered otherwise. */
export function unitAddress(bus: string, index: number): DeviceAddress | undefined {
  const units = UNITS.get(bus);
  if (units === undefined) return undefined;
  const unit = index % units;
  const isIde = bus === 'ide';
  return {
    type: 'drive',
    controller: String(Math.floor(index / units)),
    bus: String(isIde ? Math.floor(unit / UNITS_PER_IDE_BUS) : 0),
    target: '0',
    unit: String(isIde ? unit % UNITS_PER_IDE_BUS : unit),
  };
}
