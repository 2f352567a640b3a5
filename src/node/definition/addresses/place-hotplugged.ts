/**
 * Chooses the place of a hotplugged device. Only ports and controllers that the running guest already has can be used.
 * Pure; a refusal says what would help.
 */
import { chipsetOf } from '#api/devices/chipset.ts';
import { chooseFree } from '#api/devices/allocate.ts';
import { isGone, rowsFor, type KnownDevices } from '#api/devices/known-devices.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import { layoutOf } from '#node/definition/addresses/layouts.ts';
import { parsePlace, parsePlaces } from '#node/definition/addresses/place-devices.ts';
import {
  candidatePlaces,
  isOnRootBus,
  recordedPlaceOf,
  recordedPlaces,
  deviceBusOf,
} from '#node/definition/addresses/device-places.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { Device, DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';

export type HotplugPlacement =
  | { readonly device: PluggableDevice; readonly problem?: undefined }
  | { readonly problem: string; readonly device?: undefined };

/**
 * Chooses the place that the spec names; else the recorded place, if it is free; else the first free place that neither
 * the record nor the spec (`reserved`, its PCI addresses) has for another device; else the place of a device that is gone.
 * The place of a device that is only unplugged stays its own. A device that is already in the guest keeps its place.
 */
export function placeHotplugged(
  { device, pciAddress }: UnplacedDevice<PluggableDevice>,
  current: DomainDefinition,
  known: KnownDevices,
  reserved: readonly string[] = [],
): HotplugPlacement {
  const layout = layoutOfDomain(current);
  const present = current.devices.find(({ id }) => id === device.id);
  if (present?.address !== undefined) return { device: { ...device, address: present.address } };
  const refusal = checkHotpluggable(device, current, layout);
  if (refusal !== undefined) return { problem: refusal };

  const bus = deviceBusOf(device);
  const places = bus === 'pci' ? layout.pci : layout.drives[bus];
  if (places === undefined) return { problem: `the machine has no controller for ${device.id}` };
  const at = (place: number): HotplugPlacement => ({ device: { ...device, address: places.addressOf(place) } });
  const exists = placeExistsIn(bus, current, layout);
  const occupied = occupiedPlaces(bus, current, layout);

  if (bus === 'pci' && pciAddress !== undefined && pciAddress !== '') {
    const place = parsePlace(pciAddress, layout);
    if (place === undefined)
      return { problem: `${pciAddress} is not a valid address: must be one of ${layout.pci.range}` };
    const holder = occupied.get(place);
    if (holder !== undefined) return { problem: `${pciAddress} is the address of ${holder}` };
    return exists(place) ? at(place) : { problem: `the running guest has no port at ${pciAddress}; restart it` };
  }

  const rows = rowsFor(known, layout.chipset);
  const row = rows.find(({ id }) => id === device.id);
  const recorded = row && recordedPlaceOf(device, row, layout);
  const placesOf = (others: typeof rows) =>
    recordedPlaces(others, bus, new Map([[device.id, device]]), layout).values();
  const kept = new Set([
    ...placesOf(rows.filter((other) => !isGone(other))),
    ...(bus === 'pci' ? parsePlaces(reserved, layout) : []),
  ]);
  // The place of a device that was gone may belong to another one meanwhile, which is not in the guest now.
  const isFree = recorded !== undefined && !occupied.has(recorded) && !(row && isGone(row) && kept.has(recorded));
  if (isFree && exists(recorded)) return at(recorded);
  const candidates = candidatePlaces(device, layout).filter((place) => exists(place) && !kept.has(place));
  const place = chooseFree(candidates, occupied, new Set(placesOf(rows.filter(isGone))));
  if (place !== undefined) return at(place);
  return { problem: `no ${places.noun} is free in the running guest; unplug a device or restart the guest` };
}

/** Returns the layout of a running domain, whose machine type is therefore supported. */
export function layoutOfDomain({ machine }: DomainDefinition): Layout {
  return layoutOf(chipsetOf(machine) ?? 'q35');
}

/** Returns why the device cannot be hotplugged, or undefined if it can. */
function checkHotpluggable(device: PluggableDevice, { devices }: DomainDefinition, layout: Layout): string | undefined {
  if (device.type === 'interface') {
    return isOnRootBus(device, layout) ? `an interface of the model ${device.model} needs a restart` : undefined;
  }
  if (device.media === 'cdrom' || device.media === 'floppy') return `a ${device.media} drive needs a restart`;
  if (device.bus !== 'scsi' && device.bus !== 'virtio') {
    return `a disk on the bus ${device.bus} needs a restart; only scsi and virtio disks can be plugged into a running guest`;
  }
  const hasController = devices.some(({ type }) => type === 'scsi-controller');
  if (device.bus === 'virtio' || hasController) return undefined;
  return 'the guest has no SCSI controller; restart it with a scsi disk in the spec to add one';
}

/**
 * Returns a predicate for places that the guest has. A place behind a root port exists only if the guest has the port.
 */
function placeExistsIn(bus: string, { devices }: DomainDefinition, layout: Layout): (place: number) => boolean {
  const ports = new Set(devices.flatMap((device) => (device.type === 'root-port' ? [device.index] : [])));
  return (place) => bus !== 'pci' || !layout.hasPorts || ports.has(place);
}

/** Returns the ids of the devices on one bus, by place. */
function occupiedPlaces(bus: string, { devices }: DomainDefinition, layout: Layout): ReadonlyMap<number, string> {
  const occupied = new Map<number, string>();
  for (const device of devices) {
    const place = placeOnBusOf(device, bus, layout);
    if (place !== undefined) occupied.set(place, device.id);
  }
  return occupied;
}

function placeOnBusOf(device: Device, bus: string, { pci, drives }: Layout): number | undefined {
  if (device.address === undefined) return undefined;
  if (device.type === 'agent-channel') return undefined;
  if (device.type === 'root-port' || device.type === 'tpm' || device.type === 'serial') {
    return bus === 'pci' ? pci.placeOf(device.address) : undefined;
  }
  const ownBus = deviceBusOf(device);
  if (ownBus !== bus) return undefined;
  return (ownBus === 'pci' ? pci : drives[ownBus])?.placeOf(device.address);
}
