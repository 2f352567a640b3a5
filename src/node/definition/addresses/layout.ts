/**
 * The places of a chipset. Each chipset has one layout, which never changes: layout-q35.ts (ADR 10) and
 * layout-i440fx.ts (ADR 12). Places are numbers, so that allocate.ts does not need to know their meaning.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import type { PlaceKind } from '#api/devices/allocate.ts';
import type { DiskDevice } from '#node/hardware/domain-definition.ts';

/** A kind of PCI device other than disks and interfaces. `spare` has no reserved place and gets a free one. */
export type Fixture = 'scsi' | 'balloon' | 'rng' | 'video' | 'virtio-serial' | 'usb' | 'watchdog' | 'sound' | 'spare';

/** A bus of a controller whose units are disks; on usb also other devices. */
export type DriveBus = 'sata' | 'scsi' | 'ide' | 'fdc' | 'usb';

export interface Layout {
  readonly chipset: Chipset;
  readonly pci: PciPlaces;
  /** The controllers of the chipset. */
  readonly drives: Readonly<Partial<Record<DriveBus, DrivePlaces>>>;
  /** The default bus of a CD-ROM drive. */
  readonly cdromBus: 'sata' | 'ide';
  /** True if hotpluggable devices are behind root ports, which accept PCI Express devices only. */
  readonly hasPorts: boolean;
  /** Returns the number of root ports for a guest that uses the places `taken` and had `before` ports. */
  portCount(taken: ReadonlySet<number>, before: number): number;
}

interface AddressedPlaces extends PlaceKind {
  /** Returns undefined if the layout does not have this address. */
  placeOf(address: DeviceAddress): number | undefined;
  addressOf(place: number): DeviceAddress;
}

export interface PciPlaces extends AddressedPlaces {
  /** Reports whether disks and interfaces can be at this place. */
  isPluggable(place: number): boolean;
  /** The places of disks and interfaces if nothing else is requested, the best first. */
  readonly defaultPlaces: readonly number[];
  /** The places of disks and interfaces, for messages: `0000:01:00.0 to 0000:20:00.0 (slot and function are 0)`. */
  readonly range: string;
  /** Returns the places for other devices if nothing else is requested, the best first. */
  placesFor(fixture: Fixture): readonly number[];
}

export interface DrivePlaces extends AddressedPlaces {
  placesFor(media?: DiskDevice['media']): readonly number[];
}

/** Returns the numbers from `from` to `to`, both included. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
