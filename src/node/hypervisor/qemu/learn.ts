/**
 * Where the devices of a running guest are, as QEMU itself tells: from its object tree, which knows it from the first
 * moment on (the PCI view of QEMU has bus numbers only after the firmware gave them). Addresses in libvirt's shape; what
 * stands behind root port N is on bus N + 1.
 */
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import type { QmpClient } from './qmp.ts';

const PERIPHERAL = '/machine/peripheral';
const HEX = 16;

/** A device of ours in the object tree. */
export interface QomDevice {
  readonly id: string;
  /** `virtio-blk-pci`. */
  readonly type: string;
  /** Path of the bus that it is on. */
  readonly bus: string;
  readonly properties: Readonly<Record<string, number>>;
}

/** Facts for each kind of bus, by the last part of its path. */
const PROPERTIES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(?:pcie\.0|rp\d+)$/, ['addr']],
  [/^ide\.\d+$/, []],
  [/^scsi\d+\.\d+$/, ['channel', 'scsi-id', 'lun']],
];

export async function readDevices(qmp: QmpClient): Promise<QomDevice[]> {
  const entries = (await qmp.execute('qom-list', { path: PERIPHERAL })) as { name: string; type: string }[];
  const devices: QomDevice[] = [];
  for (const { name, type } of entries) {
    const match = /^child<(.+)>$/.exec(type);
    if (match !== null) devices.push(await readDevice(qmp, name, match[1] ?? ''));
  }
  return devices;
}

async function readDevice(qmp: QmpClient, id: string, type: string): Promise<QomDevice> {
  const get = (property: string) => qmp.execute('qom-get', { path: `${PERIPHERAL}/${id}`, property });
  const bus = String(await get('parent_bus'));
  const wanted = PROPERTIES.find(([pattern]) => pattern.test(busName(bus)))?.[1] ?? [];
  const values = await Promise.all(wanted.map(async (name) => [name, Number(await get(name))] as const));
  return { id, type, bus, properties: Object.fromEntries(values) };
}

/** Undefined for what has no address: serial lines, TPMs. */
export function addressOf({ bus, properties }: QomDevice): DeviceAddress | undefined {
  const name = busName(bus);
  const port = /^rp(\d+)$/.exec(name);
  if (name === 'pcie.0') return pciAddress(0, properties.addr ?? 0);
  if (port !== null) return pciAddress(Number(port[1]) + 1, properties.addr ?? 0);
  const sata = /^ide\.(\d+)$/.exec(name);
  if (sata !== null) return driveAddress(0, 0, 0, Number(sata[1]));
  const scsi = /^scsi(\d+)\.\d+$/.exec(name);
  if (scsi === null) return undefined;
  const { channel = 0, 'scsi-id': target = 0, lun = 0 } = properties;
  return driveAddress(Number(scsi[1]), channel, target, lun);
}

/**
 * What was asked for, at the addresses that QEMU tells. A device that QEMU does not have is left out: the guest does
 * not have it either. One that nobody asked for is told too, as what QEMU calls it.
 */
export function learnDevices(asked: readonly LearnedDevice[], found: readonly QomDevice[]): LearnedDevice[] {
  const byId = new Map(found.map((device) => [device.id, device]));
  const known = new Set(asked.map(({ id }) => id));
  const learned = asked.flatMap(({ address: _asked, ...device }) => {
    const qom = byId.get(device.id);
    return qom === undefined ? [] : [withAddress(device, qom)];
  });
  const others = found.filter(({ id }) => !known.has(id));
  return [
    ...learned,
    ...others.map((qom) => withAddress({ id: qom.id, type: 'unknown', device: qom.type, managed: false }, qom)),
  ];
}

function withAddress(device: LearnedDevice, qom: QomDevice): LearnedDevice {
  const address = addressOf(qom);
  return address === undefined ? device : { ...device, address };
}

function pciAddress(bus: number, devfn: number): DeviceAddress {
  const [slot, fn] = [devfn >> 3, devfn & 7];
  return { type: 'pci', domain: '0x0000', bus: hex(bus, 2), slot: hex(slot, 2), function: hex(fn, 1) };
}

function driveAddress(controller: number, bus: number, target: number, unit: number): DeviceAddress {
  return {
    type: 'drive',
    controller: String(controller),
    bus: String(bus),
    target: String(target),
    unit: String(unit),
  };
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(HEX).padStart(digits, '0')}`;
}

function busName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
