/**
 * Assigns units of controllers to disks as libvirt does: by the name of the disk's target, so that hdc is the first
 * unit of the second bus of the IDE controller. Pure.
 */
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import { specParamOf } from '#api/libvirt-layout/hardware.ts';

/** Prefixes of target names; sata, scsi and usb disks share one sequence of names. */
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

/** Returns 1 for `vdb` and 26 for `vdaa`, or undefined if the text is not a target name. */
export function targetIndex(name: string): number | undefined {
  const letters = TARGET.exec(name)?.[1];
  if (letters === undefined) return undefined;
  return [...letters].reduce((index, letter) => (index + 1) * LETTERS + letter.charCodeAt(0) - 97, -1);
}

/** Returns the target index of every disk: the given one, or the lowest that is free. */
export function targetIndexes(
  disks: readonly LearnedDevice[],
  given: ReadonlyMap<string, number> = new Map(),
): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  const taken = new Set<string>();
  const assign = (disk: LearnedDevice, index: number) => {
    indexes.set(disk.id, index);
    taken.add(nameOf(disk, index));
  };
  for (const disk of disks) {
    const index = given.get(disk.id);
    if (index !== undefined) assign(disk, index);
  }
  for (const disk of disks) {
    if (indexes.has(disk.id)) continue;
    let index = 0;
    while (taken.has(nameOf(disk, index))) index++;
    assign(disk, index);
  }
  return indexes;
}

function nameOf(disk: LearnedDevice, index: number): string {
  const bus = diskBusOf(disk);
  return `${PREFIXES.get(bus) ?? bus}${index}`;
}

export function diskBusOf(disk: LearnedDevice): string {
  return disk.device === 'floppy' ? 'fdc' : (specParamOf(disk, 'bus') ?? '');
}

/** Units per controller. The eighth SCSI unit is reserved for the controller; libvirt then uses a second controller. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['ide', 4],
  ['fdc', 2],
  ['sata', 6],
  ['scsi', 7],
]);
const UNITS_PER_IDE_BUS = 2;

/** Returns undefined for buses without units. */
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
