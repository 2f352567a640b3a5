/** Compares our layout of a domain without addresses with the layout of libvirt. */
import assert from 'node:assert/strict';
import { formatAddress } from '#api/devices/device-address.ts';
import { chipsetOf } from '#api/devices/chipset.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { specParamOf } from '#api/libvirt-layout/hardware.ts';
import { formatPciAddress } from '#api/devices/pci-address.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { rootPortAddress } from '#api/devices/root-ports.ts';

/** Fails if a device has another address than libvirt assigns, although our machines can have it, or if one is missing. */
export function assertLibvirtLayout(domain: string, defined: string): void {
  const libvirts = readLibvirt(defined).rows;
  const places = placesOf(readLibvirt(domain).rows, libvirts);
  const want = placesOf(libvirts, libvirts);
  const named = new Set(Object.keys(places));
  const missing = Object.entries(want).filter(([key, place]) => !named.has(key) && place !== '');
  assert.deepEqual(places, { ...onlyOf(want, named), ...Object.fromEntries(missing) });
  assertPorts(defined);
}

/** Returns the addresses by key; empty for addresses that our machines cannot have. */
export function placesOf(rows: readonly LearnedDevice[], libvirts: readonly LearnedDevice[]): Record<string, string> {
  const bridges = new Set(libvirts.filter(isBridge).map((row) => Number(specParamOf(row, 'index'))));
  return Object.fromEntries(
    rows.filter(isOfLayout).map((row) => [keyOf(row), isPossible(row, bridges) ? formatAddress(row) : '']),
  );
}

function onlyOf(places: Readonly<Record<string, string>>, keys: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(places).filter(([key]) => keys.has(key)));
}

/** Asserts that the root ports of q35 have the addresses of ours (ADR 10), if a video card has the slot before them. */
function assertPorts(defined: string): void {
  const { rows, machineType } = readLibvirt(defined);
  if (chipsetOf(machineType) !== 'q35' || !rows.some(({ type }) => type === 'video')) return;
  const ports = rows.filter(({ device }) => device === 'pcie-root-port');
  // With a bridge, the bus numbers are not those of ports.
  if (rows.some(isBridge) || ports.length > 32) return;
  assert.deepEqual(
    ports.map((row) => formatAddress(row)),
    ports.map((_, i) => formatPciAddress(rootPortAddress(i))),
    'root ports',
  );
}

/** Buses and controllers of the chipset. */
const WITH_THE_MACHINE = new Set(['pci', 'pcie-root-port', 'ide', 'sata', 'fdc', 'ccid']);

/** Reports whether the layout decides the address of the row. It does not decide USB ports: our controller is another model. */
function isOfLayout(row: LearnedDevice): boolean {
  const { type, device, address } = row;
  if (type === 'controller') return !WITH_THE_MACHINE.has(device) && specParamOf(row, 'model') !== 'piix3-uhci';
  return address?.['type'] !== 'usb' && type !== 'redir' && specParamOf(row, 'bus') !== 'usb';
}

function isBridge(row: LearnedDevice): boolean {
  return row.device === 'pci' && specParamOf(row, 'model')?.endsWith('-bridge') === true;
}

/** Reports whether our machines can have the row: no bridges, multifunction devices or further disk controllers. */
function isPossible(row: LearnedDevice, bridges: ReadonlySet<number>): boolean {
  if (keyOf(row).startsWith('scsi ') && keyOf(row) !== 'scsi 0') return false;
  const { type, bus, function: fn, controller } = row.address ?? {};
  if (type === 'pci') return Number(fn) === 0 && !bridges.has(Number(bus));
  return type !== 'drive' || controller === '0';
}

/** Returns the key for comparisons. Our SCSI controller is another model at the address of libvirt's first one. */
function keyOf(row: LearnedDevice): string {
  const { id, type, device } = row;
  if (type !== 'controller') return id;
  const index = specParamOf(row, 'index') ?? '0';
  return device === 'scsi' || device === 'virtio-scsi'
    ? `scsi ${index}`
    : `${device} ${index} ${specParamOf(row, 'model') ?? ''}`;
}
