/**
 * The place of a device that comes while the guest runs: only what the guest has already, ports and controllers, is there
 * to take. Pure; a refusal says what would help.
 */
import { chipsetOf } from '#api/chipset.ts';
import { bestFree } from '#node/definition/addresses/allocate.ts';
import { rowsFor, type KnownDevices } from '#node/definition/addresses/known-devices.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import { layoutOf } from '#node/definition/addresses/layouts.ts';
import { placeNamed, placesNamed } from '#node/definition/addresses/place-devices.ts';
import { choicesFor, isOnRootBus, placeFor, recordedPlaces, standOf } from '#node/definition/addresses/stands.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { Device, DomainDefinition, PluggableDevice } from '#node/definition/domain-definition.ts';

export type LatePlacement =
  | { readonly device: PluggableDevice; readonly problem?: undefined }
  | { readonly problem: string; readonly device?: undefined };

/**
 * What the spec names, else what the record has, if the guest has that place free; else the first free one that no
 * device of the record ever had and the spec names for nobody, else the first free one. A device that is in the guest
 * stays where it is. `reserved` are the PCI addresses that the spec names.
 */
export function placeLate(
  { device, pciAddress }: Unplaced<PluggableDevice>,
  current: DomainDefinition,
  known: KnownDevices,
  reserved: readonly string[] = [],
): LatePlacement {
  const layout = layoutOfDomain(current);
  const there = current.devices.find(({ id }) => id === device.id);
  if (there?.address !== undefined) return { device: { ...device, address: there.address } };
  const refused = whyNot(device, current, layout);
  if (refused !== undefined) return { problem: refused };

  const stand = standOf(device);
  const places = stand === 'pci' ? layout.pci : layout.drives[stand];
  if (places === undefined) return { problem: `the machine has no place for ${device.id}` };
  const at = (place: number): LatePlacement => ({ device: { ...device, address: places.addressOf(place) } });
  const exists = existingPlaces(stand, current, layout);
  const held = heldPlaces(stand, current, layout);

  if (stand === 'pci' && pciAddress !== undefined && pciAddress !== '') {
    const place = placeNamed(pciAddress, layout);
    if (place === undefined) return { problem: `${pciAddress} is no place for it: must be one of ${layout.pci.range}` };
    const holder = held.get(place);
    if (holder !== undefined) return { problem: `${pciAddress} is the place of ${holder}` };
    return exists(place) ? at(place) : { problem: `the running guest has no port at ${pciAddress} yet: restart it` };
  }

  const rows = rowsFor(known, layout.chipset);
  const row = rows.find(({ id }) => id === device.id);
  const recorded = row && placeFor(device, row, layout);
  if (recorded !== undefined && exists(recorded) && !held.has(recorded)) return at(recorded);

  const ofRows = recordedPlaces(rows, stand, new Map([[device.id, device]]), layout).values();
  const remembered = new Set([...ofRows, ...(stand === 'pci' ? placesNamed(reserved, layout) : [])]);
  const place = bestFree(choicesFor(device, layout).filter(exists), held, remembered);
  if (place !== undefined) return at(place);
  return { problem: `no ${places.noun} is free in the running guest: unplug something, or restart it` };
}

/** Of a domain that runs, so its machine type is one that could be defined. */
export function layoutOfDomain({ machine }: DomainDefinition): Layout {
  return layoutOf(chipsetOf(machine) ?? 'q35');
}

/** Some things can only be there from the start. */
function whyNot(device: PluggableDevice, { devices }: DomainDefinition, layout: Layout): string | undefined {
  if (device.type === 'interface') {
    return isOnRootBus(device, layout) ? `an interface of the model ${device.model} needs a restart` : undefined;
  }
  if (device.media === 'cdrom' || device.media === 'floppy') return `a ${device.media} drive needs a restart`;
  if (device.bus !== 'scsi' && device.bus !== 'virtio') {
    return `a disk on the bus ${device.bus} needs a restart; only scsi and virtio disks can be plugged into a running guest`;
  }
  const hasController = devices.some(({ type }) => type === 'scsi-controller');
  if (device.bus === 'virtio' || hasController) return undefined;
  return 'the guest has no SCSI controller; a restart with a scsi disk in the spec gives it one';
}

/** Behind ports there is a place only where the guest has the port. */
function existingPlaces(stand: string, { devices }: DomainDefinition, layout: Layout): (place: number) => boolean {
  const ports = new Set(devices.flatMap((device) => (device.type === 'root-port' ? [device.index] : [])));
  return (place) => stand !== 'pci' || !layout.hasPorts || ports.has(place);
}

/** Who is where, on one stand. */
function heldPlaces(stand: string, { devices }: DomainDefinition, layout: Layout): ReadonlyMap<number, string> {
  const held = new Map<number, string>();
  for (const device of devices) {
    const place = placeOf(device, stand, layout);
    if (place !== undefined) held.set(place, device.id);
  }
  return held;
}

function placeOf(device: Device, stand: string, { pci, drives }: Layout): number | undefined {
  if (device.address === undefined) return undefined;
  if (device.type === 'agent-channel') return undefined;
  if (device.type === 'root-port' || device.type === 'tpm' || device.type === 'serial') {
    return stand === 'pci' ? pci.placeOf(device.address) : undefined;
  }
  const deviceStand = standOf(device);
  if (deviceStand !== stand) return undefined;
  return (deviceStand === 'pci' ? pci : drives[deviceStand])?.placeOf(device.address);
}
