/**
 * Every device at its address, as the layout of the chipset has it: on PCI, or as a unit of its controller. What a device
 * may have is stands.ts's, who gets what allocate.ts's.
 */
import { isRootPort, type LearnedDevice } from '#api/learned-device.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import { allocate, type Want } from '#node/definition/addresses/allocate.ts';
import type { DriveBus, Layout } from '#node/definition/addresses/layout.ts';
import { parsePciAddress, pciAddressToMap, printAddress } from '#api/pci-address.ts';
import { choicesFor, isStray, recordedPlaces, standOf } from '#node/definition/addresses/stands.ts';
import type { Placeable, Unplaced } from '#node/definition/addresses/unplaced.ts';

export interface Placement {
  /** In the order in which they were given. */
  readonly devices: readonly Placeable[];
  readonly ports: number;
}

export interface PlaceOptions {
  readonly layout: Layout;
  /** From rowsFor. */
  readonly rows: readonly LearnedDevice[];
  /** PCI addresses that the spec names: nobody else gets them as long as others are free. */
  readonly reserved?: readonly string[];
}

const DRIVE_BUSES: readonly DriveBus[] = ['sata', 'scsi', 'ide', 'fdc', 'usb'];

/** Whoever has no place yet gets one in the order of `unplaced`. */
export function placeDevices(
  unplaced: readonly Unplaced[],
  { layout, rows, reserved = [] }: PlaceOptions,
  problems: FieldError[],
): Placement {
  const { pci } = layout;
  const wanted = new Map(unplaced.map(({ device }) => [device.id, device]));
  problems.push(...strayProblems(unplaced, rows, layout));

  const onPci = unplaced.filter(({ device }) => standOf(device) === 'pci');
  const recorded = recordedPlaces(rows, 'pci', wanted, layout);
  const pciWants = onPci.map((want) => pciWant(want, layout, problems));
  const kept = placesNamed(reserved, layout);
  const slots = allocate(pciWants, recorded, pci, kept);
  problems.push(...slots.problems);
  const addresses = new Map([...slots.places].map(([id, place]) => [id, pci.addressOf(place)]));

  for (const bus of DRIVE_BUSES) {
    const places = layout.drives[bus];
    const onBus = unplaced.filter(({ device }) => standOf(device) === bus);
    if (places === undefined || onBus.length === 0) continue;
    const wants = onBus.map((want) => plainWant(want, layout));
    const units = allocate(wants, recordedPlaces(rows, bus, wanted, layout), places);
    problems.push(...units.problems);
    for (const [id, unit] of units.places) addresses.set(id, places.addressOf(unit));
  }

  const taken = new Set([...slots.places.values(), ...recorded.values(), ...kept]);
  return {
    devices: unplaced.map(({ device }) => {
      const address = addresses.get(device.id);
      return address === undefined ? device : { ...device, address };
    }),
    ports: layout.portCount(taken, rows.filter(isRootPort).length),
  };
}

/** The place that a PCI address of a spec stands for, where disks and interfaces may be there. */
export function placeNamed(text: string, { pci }: Layout): number | undefined {
  const address = parsePciAddress(text);
  const place = address && pci.placeOf(pciAddressToMap(address));
  return place !== undefined && pci.isPluggable(place) ? place : undefined;
}

export function placesNamed(addresses: readonly string[], layout: Layout): number[] {
  return addresses.flatMap((text) => placeNamed(text, layout) ?? []);
}

function plainWant({ device, field }: Unplaced, layout: Layout): Want {
  return { id: device.id, field, choices: choicesFor(device, layout) };
}

function pciWant(want: Unplaced, layout: Layout, problems: FieldError[]): Want {
  const { device, field, pciAddress } = want;
  const plain = plainWant(want, layout);
  if (pciAddress === undefined || pciAddress === '') return plain;
  const pinField = `${field}.${device.type === 'disk' ? 'disk.' : ''}pciAddress`;
  const place = placeNamed(pciAddress, layout);
  if (place === undefined) {
    problems.push(invalidValue(pinField, pciAddress, `must be one of ${layout.pci.range}`));
    return plain;
  }
  return { ...plain, pinned: { place, field: pinField } };
}

function strayProblems(unplaced: readonly Unplaced[], rows: readonly LearnedDevice[], layout: Layout): FieldError[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return unplaced.flatMap(({ device, field, pciAddress }) => {
    const row = byId.get(device.id);
    if (row?.address === undefined || (pciAddress !== undefined && pciAddress !== '')) return [];
    if (!isStray(device, row, layout)) return [];
    const detail = 'the recorded address has no place in the layout of this machine type';
    return [invalidValue(field, printAddress(row.address), detail)];
  });
}
