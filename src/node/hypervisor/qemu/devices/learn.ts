/**
 * Learns the devices of a running guest from QEMU's object tree. The tree has all addresses from the start, whereas
 * QEMU's PCI view has bus numbers only after the firmware assigned them. Addresses have libvirt's form.
 *
 *   pcie.0, pci.0      bus 0              rpN              bus N + 1, behind root port N
 *   ide.N of q35       SATA unit N        ide.N of i440fx  bus N, unit 0 or 1
 *   floppy-bus.0       unit               scsiN.0          controller N, channel, target, lun
 *   of a controller xN: virtio-serial     port             usb: port, as `1.2`
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import { pciAddressToMap } from '#api/devices/pci-address.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { requireChipset } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

const PERIPHERAL = '/machine/peripheral';

/** A device with an id in QEMU's object tree. */
export interface QomDevice {
  readonly id: string;
  /** `virtio-blk-pci`. */
  readonly type: string;
  /** The path of the device's bus. */
  readonly bus: string;
  readonly properties: Readonly<Record<string, string | number>>;
}

interface BusKind {
  /** Matches the last part of the bus path; the group captures the bus number. */
  readonly bus: RegExp;
  /** Matches the device type, if the bus name is ambiguous. */
  readonly device?: RegExp;
  readonly properties: readonly string[];
  addressOf(bus: number, properties: QomDevice['properties'], chipset: Chipset): DeviceAddress;
}

const BUS_KINDS: readonly BusKind[] = [
  { bus: /^pcie?\.0$/, properties: ['addr'], addressOf: (_bus, { addr }) => pciAddress(0, addr) },
  { bus: /^rp(\d+)$/, properties: ['addr'], addressOf: (port, { addr }) => pciAddress(port + 1, addr) },
  {
    bus: /^ide\.(\d+)$/,
    properties: ['unit'],
    addressOf: (bus, { unit }, chipset) =>
      chipset === 'q35' ? driveAddress(0, 0, 0, bus) : driveAddress(0, bus, 0, unit),
  },
  { bus: /^floppy-bus\.(\d+)$/, properties: ['unit'], addressOf: (bus, { unit }) => driveAddress(bus, 0, 0, unit) },
  {
    bus: /^scsi(\d+)\.\d+$/,
    properties: ['channel', 'scsi-id', 'lun'],
    addressOf: (bus, { channel, 'scsi-id': target, lun }) => driveAddress(bus, channel, target, lun),
  },
  {
    bus: /(\d*)\.0$/,
    device: /^virt(?:serialport|console)$/,
    properties: ['nr'],
    addressOf: (controller, { nr = 0 }) => ({
      type: 'virtio-serial',
      controller: String(controller),
      bus: '0',
      port: String(nr),
    }),
  },
  {
    bus: /(\d*)\.0$/,
    device: /^usb-/,
    properties: ['port'],
    addressOf: (bus, { port = '' }) => ({ type: 'usb', bus: String(bus), port: String(port) }),
  },
];

function busKind({ type, bus }: Pick<QomDevice, 'type' | 'bus'>): BusKind | undefined {
  return BUS_KINDS.find((kind) => kind.bus.test(busName(bus)) && (kind.device?.test(type) ?? true));
}

async function readQomDevices(qmp: QmpClient): Promise<QomDevice[]> {
  const devices: QomDevice[] = [];
  for (const [id, type] of await readDeviceTypes(qmp)) devices.push(await readDevice(qmp, id, type));
  return devices;
}

/** Returns the types of all devices with an id, by id. */
export async function readDeviceTypes(qmp: QmpClient): Promise<ReadonlyMap<string, string>> {
  const entries = (await qmp.execute('qom-list', { path: PERIPHERAL })) as { name: string; type: string }[];
  const types = new Map<string, string>();
  for (const { name, type } of entries) {
    const match = /^child<(.+)>$/.exec(type);
    if (match !== null) types.set(name, match[1] ?? '');
  }
  return types;
}

async function readDevice(qmp: QmpClient, id: string, type: string): Promise<QomDevice> {
  const get = (property: string) => qmp.execute('qom-get', { path: `${PERIPHERAL}/${id}`, property });
  const bus = String(await get('parent_bus'));
  const wanted = busKind({ type, bus })?.properties ?? [];
  const values = await Promise.all(wanted.map(async (name) => [name, (await get(name)) as string | number] as const));
  return { id, type, bus, properties: Object.fromEntries(values) };
}

/** Returns undefined for devices without an address, such as serial ports and TPMs. */
export function qomAddress(device: QomDevice, chipset: Chipset): DeviceAddress | undefined {
  const kind = busKind(device);
  const number = kind?.bus.exec(busName(device.bus))?.[1];
  return kind?.addressOf(Number(number ?? 0), device.properties, chipset);
}

/**
 * Returns the requested devices with the addresses that QEMU reports. A device that QEMU does not have is left out,
 * because the guest does not have it either. A device that was not requested is included under QEMU's type name.
 */
export function learnDevices(
  requested: readonly LearnedDevice[],
  found: readonly QomDevice[],
  chipset: Chipset,
): LearnedDevice[] {
  const byId = new Map(found.map((device) => [device.id, device]));
  const known = new Set(requested.map(({ id }) => id));
  const learned = requested.flatMap(({ address: _asked, ...device }) => {
    const qom = byId.get(device.id);
    return qom === undefined ? [] : [addAddress(device, qom, chipset)];
  });
  const others = found.filter(({ id }) => !known.has(id));
  return [
    ...learned,
    ...others.map((qom) => addAddress({ id: qom.id, type: 'unknown', device: qom.type, managed: false }, qom, chipset)),
  ];
}

/** Learns all devices of the guest with this definition. */
export async function learnGuest(qmp: QmpClient, definition: DomainDefinition): Promise<LearnedDevice[]> {
  return learnDevices(toLearnedDevices(definition), await readQomDevices(qmp), requireChipset(definition));
}

function addAddress(device: LearnedDevice, qom: QomDevice, chipset: Chipset): LearnedDevice {
  const address = qomAddress(qom, chipset);
  return address === undefined ? device : { ...device, address };
}

type QomValue = string | number | undefined;

function pciAddress(bus: number, addr: QomValue): DeviceAddress {
  const devfn = Number(addr ?? 0);
  return pciAddressToMap({ domain: 0, bus, slot: devfn >> 3, function: devfn & 7 });
}

function driveAddress(controller: number, bus: QomValue = 0, target: QomValue = 0, unit: QomValue = 0): DeviceAddress {
  return {
    type: 'drive',
    controller: String(controller),
    bus: String(bus),
    target: String(target),
    unit: String(unit),
  };
}

function busName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
