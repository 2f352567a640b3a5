/** Renders the identity of a VM: a summary, its devices as a table, and as a tree of buses. Pure. */
import { compareText } from '#lib/text/compare-text.ts';
import { chipsetOf } from '#api/devices/chipset.ts';
import { formatAddress, driveBusOf, formatDrive, formatNumbered } from '#api/devices/device-address.ts';
import { pciAddressFromMap, formatPciAddress, type PciAddress } from '#api/devices/pci-address.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { interfacesOf } from '#api/devices/attached-interfaces.ts';

interface IdentitySummary {
  readonly uuid: string;
  readonly serial: string;
  /** '' before the first start. */
  readonly machine: string;
  /** `mac` is '' if neither the record nor the template has one. */
  readonly macs: readonly { readonly name: string; readonly mac: string }[];
  /** The recorded addresses on the default network; absent if there are none. */
  readonly addresses?: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  /** RFC 3339: the time of the last entry of the history; '' if there is none. */
  readonly unchangedSince: string;
  readonly lastChange: string;
}

/** Summarizes the record of the VM. Records of older versions leave out MACs that the template sets. */
export function summarizeIdentity(vm: Pick<VirtualMachine, 'spec'>, record: VirtualMachineIdentity): IdentitySummary {
  const template = vm.spec.template.spec ?? { domain: {} };
  const { uuid, serial } = record.spec.firmware ?? {};
  const recorded = new Map(record.spec.interfaces?.map(({ name, macAddress }) => [name, macAddress]));
  const macs = interfacesOf(template).map(({ name, macAddress }) => ({
    name,
    mac: (recorded.get(name) || macAddress || '').toLowerCase(),
  }));
  const addresses = (record.spec.interfaces ?? []).flatMap(({ name, addresses: own = [] }) =>
    own.length === 0 ? [] : [{ name, addresses: own }],
  );
  const last = record.status?.history?.at(-1);
  return {
    uuid: uuid ?? '',
    serial: serial ?? '',
    machine: record.status?.machine?.type ?? '',
    macs,
    ...(addresses.length > 0 && { addresses }),
    unchangedSince: last?.at ?? '',
    lastChange: last?.what ?? '',
  };
}

export const DEVICE_COLUMNS = ['DEVICE', 'TYPE', 'ADDRESS', 'BOOT', 'PLUGGED', 'MANAGED'] as const;

/** Returns the rows of the table. Root ports are shown in the tree only. */
export function buildDeviceRows(devices: readonly LearnedDevice[]): string[][] {
  return devices
    .filter((device) => !isPort(device))
    .toSorted(byPlace)
    .map((device) => [
      device.id,
      `${device.type}/${device.device}`,
      formatAddress(device) || '<none>',
      device.bootOrder === undefined ? '<none>' : String(device.bootOrder),
      device.plugged === false ? 'no' : 'yes',
      device.managed === true ? 'yes' : 'no',
    ]);
}

interface BusNode {
  readonly text: string;
  readonly children: readonly BusNode[];
}

/** Returns the PCI bus with its devices, then the devices that have another kind of address, then those without one. */
export function buildBusTree({ machine, devices = [] }: IdentityStatus): BusNode[] {
  const placed = devices.flatMap((device) => {
    const pci = pciAddressFromMap(device.address ?? {});
    return pci === undefined ? [] : [{ device, pci }];
  });
  const drives = devices.filter(({ address }) => address?.['type'] === 'drive');
  const root = placed.filter(({ pci }) => pci.bus === 0).toSorted(byPci);
  const behind = Map.groupBy(
    placed.filter(({ pci }) => pci.bus > 0),
    ({ pci }) => pci.bus,
  );
  const scsi = root.find(({ device }) => device.device === 'virtio-scsi')?.device.id;
  const controllerOf = ({ address }: LearnedDevice) =>
    root.find(({ device }) => CONTROLLER_MATCHERS[address?.['type'] ?? '']?.(device) === true)?.device;
  const others = devices.filter(
    ({ address }) => address?.['type'] !== 'drive' && pciAddressFromMap(address ?? {}) === undefined,
  );
  const rest = others.filter((device) => controllerOf(device) === undefined);
  const name = chipsetOf(machine?.type) === 'i440fx' ? 'pci.0' : 'pcie.0';
  const nodes = root.map(({ device, pci }): BusNode => {
    const bus = isPort(device) ? busBehind(device) : undefined;
    const plugged = bus === undefined ? [] : takeDevicesOnBus(behind, bus);
    const disks = device.id === scsi ? drives.filter((drive) => driveBusOf(drive) === 'scsi').toSorted(byPlace) : [];
    const numbered = others.filter((other) => controllerOf(other) === device).toSorted(byPlace);
    const children = [...plugged.map(pciNode), ...disks.map(driveNode), ...numbered.map(numberedNode)];
    return { text: `${shortPci(pci)} ${describeDevice(device)}`, children };
  });
  const orphans = [...behind].map(([bus, onBus]): BusNode => ({ text: `bus ${bus}`, children: onBus.map(pciNode) }));
  return [
    ...(nodes.length + orphans.length > 0 ? [{ text: name, children: [...nodes, ...orphans] }] : []),
    ...driveBuses(scsi === undefined ? drives : drives.filter((drive) => driveBusOf(drive) !== 'scsi')),
    ...groupNode('on other buses', rest.filter(hasAddress)),
    ...groupNode(
      'without an address',
      rest.filter((device) => !hasAddress(device)),
    ),
  ];
}

/**
 * By type of an address: whether a controller has the bus of that address. A machine has one controller of each type.
 */
const CONTROLLER_MATCHERS: Readonly<Record<string, (controller: LearnedDevice) => boolean>> = {
  usb: ({ type, device }) => type === 'controller' && device === 'usb',
  'virtio-serial': ({ device }) => device === 'virtio-serial',
};

const hasAddress = (device: LearnedDevice) => formatAddress(device) !== '';

const groupNode = (text: string, devices: readonly LearnedDevice[]): BusNode[] =>
  devices.length === 0 ? [] : [{ text, children: devices.map(restNode) }];

/** Returns one line for each node, with children below their parents. */
export function renderTree(nodes: readonly BusNode[]): string[] {
  return nodes.flatMap(({ text, children }) => [text, ...renderBranches(children, '')]);
}

function renderBranches(nodes: readonly BusNode[], indent: string): string[] {
  return nodes.flatMap(({ text, children }, i) => {
    const isLast = i === nodes.length - 1;
    return [
      `${indent}${isLast ? '└─' : '├─'} ${text}`,
      ...renderBranches(children, `${indent}${isLast ? '   ' : '│  '}`),
    ];
  });
}

type Placed = { readonly device: LearnedDevice; readonly pci: PciAddress };

const BUS_TITLES: Readonly<Record<string, string>> = {
  sata: 'SATA',
  scsi: 'SCSI',
  ide: 'IDE',
  fdc: 'floppy',
};

function driveBuses(drives: readonly LearnedDevice[]): BusNode[] {
  const buses = [...Map.groupBy(drives, (drive) => driveBusOf(drive))];
  return buses.map(([bus, onBus]) => ({
    text: Object.hasOwn(BUS_TITLES, bus) ? (BUS_TITLES[bus] ?? bus) : bus || 'drives',
    children: onBus.toSorted(byPlace).map(driveNode),
  }));
}

/**
 * Returns the number of the bus behind a root port. Ports of our layout are numbered by id (ADR 10); imported ones have
 * an index.
 */
function busBehind({ id, specParams }: LearnedDevice): number | undefined {
  const index = specParams?.['index'];
  if (typeof index === 'string' && /^[0-9]{1,3}$/.test(index)) return Number(index);
  const [, port] = /^rp([0-9]{1,2})$/.exec(id) ?? [];
  return port === undefined ? undefined : Number(port) + 1;
}

function takeDevicesOnBus(behind: Map<number, Placed[]>, bus: number): Placed[] {
  const onBus = behind.get(bus) ?? [];
  behind.delete(bus);
  return onBus;
}

const pciNode = ({ device, pci }: Placed): BusNode => ({
  text: `${shortPci(pci)} ${describeDevice(device)}`,
  children: [],
});
const driveNode = (device: LearnedDevice): BusNode => ({
  text: `${formatDrive(device.address ?? {})} ${describeDevice(device)}`,
  children: [],
});
const numberedNode = (device: LearnedDevice): BusNode => ({
  text: `${formatNumbered(device.address ?? {})} ${describeDevice(device)}`,
  children: [],
});
const restNode = (device: LearnedDevice): BusNode => ({
  text: [formatAddress(device), describeDevice(device)].filter((part) => part !== '').join(' '),
  children: [],
});

/** Formats without the domain if it is 0, as it usually is. */
const shortPci = (pci: PciAddress) =>
  pci.domain === 0 ? formatPciAddress(pci).slice('0000:'.length) : formatPciAddress(pci);

function describeDevice({ id, type, device, plugged }: LearnedDevice): string {
  return `${id} (${type === device ? type : `${type}, ${device}`}${plugged === false ? ', unplugged' : ''})`;
}

function isPort({ type, device }: LearnedDevice): boolean {
  return type === 'controller' && device === 'pcie-root-port';
}

function byPlace(a: LearnedDevice, b: LearnedDevice): number {
  return compareText(sortKey(a), sortKey(b)) || compareText(a.id, b.id);
}

function sortKey(device: LearnedDevice): string {
  const pci = pciAddressFromMap(device.address ?? {});
  if (pci !== undefined) return `0 ${formatPciAddress(pci)}`;
  const { unit = '', bus = '' } = device.address ?? {};
  if (device.address?.['type'] === 'drive') return `1 ${driveBusOf(device)} ${bus} ${unit.padStart(5, '0')}`;
  const { type = '', port = '' } = device.address ?? {};
  return type === '' ? `3 ${device.type}` : `2 ${type} ${bus} ${port.padStart(5, '0')}`;
}

const byPci = (a: Placed, b: Placed) => compareText(formatPciAddress(a.pci), formatPciAddress(b.pci));
