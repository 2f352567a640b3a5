/**
 * What a chipset has to say about places. There is one layout for each, both of them final: layout-q35.ts (ADR 10) and
 * layout-i440fx.ts (ADR 12). Places are numbers, so that allocate.ts need not know what they stand for.
 */
import type { Chipset } from '#api/chipset.ts';
import type { DeviceAddress } from '#api/learned-device.ts';
import type { Places } from '#node/definition/addresses/allocate.ts';
import type { DiskDevice } from '#node/definition/domain-definition.ts';

/** What stands on PCI besides disks and interfaces; `spare` has no place of its own, only what is left. */
export type Fixture = 'scsi' | 'balloon' | 'rng' | 'video' | 'virtio-serial' | 'usb' | 'watchdog' | 'sound' | 'spare';

/** Controllers that have disks as their units; that of USB has others, too. */
export type DriveBus = 'sata' | 'scsi' | 'ide' | 'fdc' | 'usb';

export interface Layout {
  readonly chipset: Chipset;
  readonly pci: PciPlaces;
  /** Those that a guest can have. */
  readonly drives: Readonly<Partial<Record<DriveBus, DrivePlaces>>>;
  /** Where a CD-ROM drive is that names no bus. */
  readonly cdromBus: 'sata' | 'ide';
  /** Whether what comes and goes stands behind root ports, where PCI Express devices are and no conventional ones. */
  readonly hasPorts: boolean;
  /** Root ports that a guest gets that uses `taken` places and had `before` ports. */
  portCount(taken: ReadonlySet<number>, before: number): number;
}

interface AddressedPlaces extends Places {
  /** Undefined where the layout has no such place. */
  placeOf(address: DeviceAddress): number | undefined;
  addressOf(place: number): DeviceAddress;
}

export interface PciPlaces extends AddressedPlaces {
  /** Whether disks and interfaces, which come and go, may be there. */
  isPluggable(place: number): boolean;
  /** What they get where nothing is said, the best first. */
  readonly offered: readonly number[];
  /** Those places for people: `0000:01:00.0 to 0000:20:00.0 (slot and function are 0)`. */
  readonly range: string;
  /** What others get where nothing is said, the best first. */
  placesFor(fixture: Fixture): readonly number[];
}

export interface DrivePlaces extends AddressedPlaces {
  placesFor(media?: DiskDevice['media']): readonly number[];
}

/** `from` up to and with `to`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
