/**
 * Predicts the root ports that the next start of a guest adds or removes. Ports are hardware: the guest lists them. A
 * start adds them if a device of the template has no port otherwise, by the rules with which the node places devices
 * (docs/adr/0010-guest-layout.md). Pure.
 */
import { allocate, type PlaceKind, type PlaceRequest } from '#api/devices/allocate.ts';
import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import { formatAddress } from '#api/devices/device-address.ts';
import { isFixedDeviceId } from '#api/devices/fixed-devices.ts';
import { byClaim, isGone, isUnplugged, rowsFor } from '#api/devices/known-devices.ts';
import { isRootPort, type LearnedDevice } from '#api/devices/learned-device.ts';
import { formatPciAddress, parsePciAddress, pciAddressFromMap } from '#api/devices/pci-address.ts';
import { behindPort, countPorts, MAX_PORTS, portOf, rootPortAddress, rootPortId } from '#api/devices/root-ports.ts';
import { isConventional } from '#api/domain/interface.ts';
import { NOT_PRESENT, type Difference, type LastSeen } from '#api/identity/identity-last-seen.ts';
import { nextDevices, type NextDevice } from '#api/identity/next-devices.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

const PORTS: PlaceKind = { noun: 'PCI port', print: (port) => formatPciAddress(behindPort(port)) };
const ALL_PORTS = Array.from({ length: MAX_PORTS }, (_, port) => port);
const KIND = 'pcie-root-port';
/** Many formats list no ports. The guest may have had some, but at other addresses than here. */
const IMPORT_WITHOUT_PORTS = 'the import lists no root ports; a q35 guest gets them at its first start here';

/** Types that only the template decides; rows of other types are passed back to the guest. */
const TEMPLATE_TYPES: ReadonlySet<string> = new Set(['disk', 'interface', 'rng', 'balloon']);

export function portDifferences(next: VmiSpec, { known, isImported }: LastSeen, machine: string): Difference[] {
  const chipset = chipsetOf(machine);
  const recorded = known.devices.filter(isRootPort);
  if (known.devices.length === 0 || chipset === undefined) return [];
  const isOtherChipset = (chipsetOf(known.machine) ?? chipset) !== chipset;
  if (chipset !== 'q35') return isOtherChipset ? recorded.map(removedPort) : [];
  const rows = rowsFor(known, chipset);
  const before = new Set(rows.filter(isRootPort).map(({ id }) => id));
  const { count, users } = predictPorts(next, rows, chipset);
  const needy = users.filter(({ port }) => port >= before.size).map(({ id }) => id);
  const why = isImported && recorded.length === 0 ? IMPORT_WITHOUT_PORTS : portReason(needy, isOtherChipset);
  return ALL_PORTS.slice(0, count)
    .filter((port) => !before.has(rootPortId(port)))
    .map((port) => addedPort(port, why));
}

function addedPort(port: number, why: string): Difference {
  const to = `${KIND}, address ${formatPciAddress(rootPortAddress(port))}`;
  return { what: rootPortId(port), from: NOT_PRESENT, to, why };
}

function removedPort(row: LearnedDevice): Difference {
  const why = 'the new chipset has no root ports';
  return { what: row.id, from: `${KIND}, address ${formatAddress(row)}`, to: NOT_PRESENT, why };
}

function portReason(needy: readonly string[], isOtherChipset: boolean): string {
  if (isOtherChipset) return 'devices of q35 are behind root ports';
  if (needy.length === 0) return 'ports come in slots of eight';
  return `${needy.join(', ')} ${needy.length === 1 ? 'needs a port' : 'need ports'}; ports come in slots of eight`;
}

interface PortPrediction {
  readonly count: number;
  /** Devices and the ports before them. */
  readonly users: readonly { readonly id: string; readonly port: number }[];
}

/** Assigns ports to the devices of the next start as the node does. */
function predictPorts(next: VmiSpec, known: readonly LearnedDevice[], chipset: Chipset): PortPrediction {
  const devices = nextDevices(next, chipset);
  const elsewhere = new Set(devices.filter(leavesPort).map(({ id }) => id));
  const rows = known.filter(({ id }) => !elsewhere.has(id));
  const wanted = devices.filter((device) => device.plugged && isBehindPort(device));
  const requests = wanted.map(({ id, pin }): PlaceRequest => {
    const port = portAt(pin);
    return { id, field: id, choices: ALL_PORTS, ...(port !== undefined && { pinned: { place: port, field: id } }) };
  });
  const kept = rows.filter((row) => isKept(row, devices) && portOfRow(row) !== undefined);
  const all = [...requests, ...kept.map(({ id }) => ({ id, field: id, choices: [] }))];
  const reserved = devices.flatMap(({ pin }) => portAt(pin) ?? []);
  const unplugged = rows.filter(isUnplugged).flatMap((row) => portOfRow(row) ?? []);
  const { places } = allocate(
    all,
    recordedPorts(rows, new Set(all.map(({ id }) => id)), new Set(reserved)),
    PORTS,
    reserved,
  );
  return {
    count: countPorts(new Set([...places.values(), ...reserved, ...unplugged]), rows.filter(isRootPort).length),
    users: [...places].map(([id, port]) => ({ id, port })),
  };
}

/** Virtio disks and PCI Express interfaces are behind ports. */
function isBehindPort({ type, device, bus }: NextDevice): boolean {
  return type === 'disk' ? bus === 'virtio' : type === 'interface' && !isConventional(device);
}

/** Reports whether the device has another bus than that of ports. If its row has a port, that is free for others. */
function leavesPort(device: NextDevice): boolean {
  return device.plugged && (device.type === 'disk' || device.type === 'interface') && !isBehindPort(device);
}

/** Reports whether the guest keeps this device, which is neither a disk nor an interface. */
function isKept(row: LearnedDevice, devices: readonly NextDevice[]): boolean {
  if (isRootPort(row) || row.type === 'disk' || row.type === 'interface') return false;
  const isRequested = devices.some(({ id, plugged }) => id === row.id && plugged);
  return isRequested || (row.plugged !== false && !TEMPLATE_TYPES.has(row.type) && !isFixedDeviceId(row.id));
}

/**
 * Returns the recorded ports by device id. `present` are the ids of the devices of the next start. A device that
 * returns does not get its port back if it belongs to another device meanwhile, or if the spec names it (`reserved`).
 */
function recordedPorts(
  rows: readonly LearnedDevice[],
  present: ReadonlySet<string>,
  reserved: ReadonlySet<number>,
): ReadonlyMap<string, number> {
  const recorded = new Map<string, number>();
  const occupied = new Set<number>();
  for (const row of byClaim(rows)) {
    const port = portOfRow(row);
    if (port === undefined) continue;
    const isTaken = occupied.has(port) || (isGone(row) && reserved.has(port));
    if (present.has(row.id) && isTaken && (row.plugged === false || isGone(row))) continue;
    recorded.set(row.id, port);
    if (present.has(row.id) || isUnplugged(row)) occupied.add(port);
  }
  return recorded;
}

function portOfRow({ address }: LearnedDevice): number | undefined {
  const pci = address && pciAddressFromMap(address);
  return pci && portOf(pci);
}

function portAt(pin: string | undefined): number | undefined {
  const pci = pin === undefined ? undefined : parsePciAddress(pin);
  return pci && portOf(pci);
}
