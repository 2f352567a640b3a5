/**
 * Gives every device its address in the layout of the chipset: on PCI, or as a unit of its controller. device-places.ts
 * knows the candidates for each device; allocate.ts distributes them.
 */
import { isUnplugged } from '#api/devices/known-devices.ts';
import { isRootPort, type LearnedDevice } from '#api/devices/learned-device.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import { allocate, type PlaceRequest } from '#api/devices/allocate.ts';
import type { DriveBus, Layout } from '#node/definition/addresses/layout.ts';
import { parsePciAddress, pciAddressToMap, formatAnyAddress } from '#api/devices/pci-address.ts';
import {
  candidatePlaces,
  isRecordUnusable,
  recordedPlaces,
  deviceBusOf,
} from '#node/definition/addresses/device-places.ts';
import type { PlaceableDevice, UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';

interface DevicePlacement {
  /** In the order of the input. */
  readonly devices: readonly PlaceableDevice[];
  readonly ports: number;
}

interface DevicePlacementOptions {
  readonly layout: Layout;
  /** The result of rowsFor. */
  readonly rows: readonly LearnedDevice[];
  /** PCI addresses that the spec names. Other devices get them only if nothing else is free. */
  readonly reserved?: readonly string[];
}

const DRIVE_BUSES: readonly DriveBus[] = ['sata', 'scsi', 'ide', 'fdc', 'usb'];

/** Places the devices. Those without a recorded place get one in the order of `unplaced`. Appends to `problems`. */
export function placeDevices(
  unplaced: readonly UnplacedDevice[],
  { layout, rows, reserved = [] }: DevicePlacementOptions,
  problems: FieldError[],
): DevicePlacement {
  const { pci } = layout;
  const devicesById = new Map(unplaced.map(({ device }) => [device.id, device]));
  problems.push(...findUnusableRows(unplaced, rows, layout));

  const pciDevices = unplaced.filter(({ device }) => deviceBusOf(device) === 'pci');
  const pciRequests = pciDevices.map((want) => toPciPlaceRequest(want, layout, problems));
  const reservedPlaces = parsePlaces(reserved, layout);
  const recorded = recordedPlaces(rows, 'pci', devicesById, layout, new Set(reservedPlaces));
  const slots = allocate(pciRequests, recorded, pci, reservedPlaces);
  problems.push(...slots.problems);
  const addresses = new Map([...slots.places].map(([id, place]) => [id, pci.addressOf(place)]));

  for (const bus of DRIVE_BUSES) {
    const places = layout.drives[bus];
    const busDevices = unplaced.filter(({ device }) => deviceBusOf(device) === bus);
    if (places === undefined || busDevices.length === 0) continue;
    const requests = busDevices.map((want) => toPlaceRequest(want, layout));
    const units = allocate(requests, recordedPlaces(rows, bus, devicesById, layout), places);
    problems.push(...units.problems);
    for (const [id, unit] of units.places) addresses.set(id, places.addressOf(unit));
  }

  // The place of a device that is gone needs no port; that of a device that can be plugged in again does.
  const unplugged = recordedPlaces(rows.filter(isUnplugged), 'pci', devicesById, layout).values();
  const usedPlaces = new Set([...slots.places.values(), ...reservedPlaces, ...unplugged]);
  return {
    devices: unplaced.map(({ device }) => {
      const address = addresses.get(device.id);
      return address === undefined ? device : { ...device, address };
    }),
    ports: layout.portCount(usedPlaces, rows.filter(isRootPort).length),
  };
}

/** Returns the place of a PCI address in a spec, or undefined if disks and interfaces cannot be there. */
export function parsePlace(text: string, { pci }: Layout): number | undefined {
  const address = parsePciAddress(text);
  const place = address && pci.placeOf(pciAddressToMap(address));
  return place !== undefined && pci.isPluggable(place) ? place : undefined;
}

export function parsePlaces(addresses: readonly string[], layout: Layout): number[] {
  return addresses.flatMap((text) => parsePlace(text, layout) ?? []);
}

function toPlaceRequest({ device, field }: UnplacedDevice, layout: Layout): PlaceRequest {
  return { id: device.id, field, choices: candidatePlaces(device, layout) };
}

function toPciPlaceRequest(unplaced: UnplacedDevice, layout: Layout, problems: FieldError[]): PlaceRequest {
  const { device, field, pciAddress } = unplaced;
  const plain = toPlaceRequest(unplaced, layout);
  if (pciAddress === undefined || pciAddress === '') return plain;
  const pinField = `${field}.${device.type === 'disk' ? 'disk.' : ''}pciAddress`;
  const place = parsePlace(pciAddress, layout);
  if (place === undefined) {
    problems.push(invalidValue(pinField, pciAddress, `must be one of ${layout.pci.range}`));
    return plain;
  }
  return { ...plain, pinned: { place, field: pinField } };
}

function findUnusableRows(
  unplaced: readonly UnplacedDevice[],
  rows: readonly LearnedDevice[],
  layout: Layout,
): FieldError[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return unplaced.flatMap(({ device, field, pciAddress }) => {
    const row = byId.get(device.id);
    if (row?.address === undefined || (pciAddress !== undefined && pciAddress !== '')) return [];
    if (!isRecordUnusable(device, row, layout)) return [];
    const detail = 'the recorded address does not exist in the layout of this machine type';
    return [invalidValue(field, formatAnyAddress(row.address), detail)];
  });
}
