/**
 * The devices of a VM of the host API. An entry keeps the device as it was sent, including the manager's deviceId, and
 * adds our own id, which is its id in QEMU: disks by bus and index, network cards by number, others by type.
 */
import { AGENT_PORT_NAME } from '#api/devices/agent-channel.ts';
import type { Chipset } from '#api/devices/chipset.ts';
import { deriveMac } from '#api/identity/derived-mac.ts';
import type { HostDevice } from '#api/host-api.ts';
import { newUid } from '#lib/ids.ts';
import { AGENT_CHANNEL_ID } from '#node/definition/devices/agent-channel.ts';
import { checkDevice, IFACES } from '#node/host-api/sent/check-device.ts';
import { ifaceOf } from '#node/host-api/sent/device-fields.ts';
import { assignDiskIndexes, lowestFreeIndex, type IndexedDisk } from '#node/host-api/sent/disk-index.ts';
import { quoteSentValue, readWholeNumber, readWord } from '#node/host-api/sent/sent-values.ts';
import type { SentDevice } from '#node/host-api/sent/old-format.ts';

export interface DeviceEntry {
  /** Our id, which is also the id in QEMU. */
  readonly id: string;
  /** The path of the device in the request, for messages. */
  readonly field: string;
  /** The device as `list` reports it: as it was sent, completed with type, device, deviceId and index. */
  readonly device: HostDevice & { readonly deviceId: string };
}

export const MAX_DEVICES = 200;

/** Fixed ids of the device types of which a guest has at most one. */
const SINGLETON_IDS: Readonly<Record<string, string>> = {
  balloon: 'balloon0',
  rng: 'rng0',
  tpm: 'tpm0',
  console: 'serial0',
};

/**
 * Builds the entries of the sent devices and appends to `errors`. `existing` are the devices that the guest already
 * has.
 */
export function buildDeviceEntries(
  sent: readonly SentDevice[],
  { chipset, existing = [] }: { readonly chipset: Chipset; readonly existing?: readonly DeviceEntry[] },
  errors: string[],
): readonly DeviceEntry[] {
  if (sent.length + existing.length > MAX_DEVICES) {
    errors.push(`devices: ${sent.length + existing.length} devices; expected at most ${MAX_DEVICES}`);
    return [];
  }
  const found = errors.length;
  for (const { field, device } of sent) errors.push(...checkDevice(field, device));
  if (errors.length > found) return [];

  const complete = assignIndexes(sent, { chipset, existing }, errors);
  const usedIds = new Set(existing.map(({ id }) => id));
  const deviceIds = new Set(existing.map(({ device }) => device.deviceId));
  return complete.map(({ field, device }) => {
    const id = chooseId(device, usedIds);
    // Two disks with the same index are already reported by assignIndexes.
    if (usedIds.has(id) && device.type !== 'disk') errors.push(`${field}: a guest has at most one ${device.device}`);
    usedIds.add(id);
    const deviceId = readWord(device.deviceId) ?? newUid();
    if (deviceIds.has(deviceId))
      errors.push(`${field}.deviceId: ${quoteSentValue(deviceId)} is already used by another device`);
    deviceIds.add(deviceId);
    return {
      id,
      field,
      device: { ...device, ...(device.type === 'interface' && macOrDerived(device, deviceId)), deviceId },
    };
  });
}

/** Returns the MAC address of a network card: the one that was sent, or else one derived from its deviceId. */
function macOrDerived({ macAddr }: HostDevice, deviceId: string): { readonly macAddr: string } {
  return { macAddr: readWord(macAddr) ?? deriveMac(deviceId, '') };
}

function assignIndexes(
  sent: readonly SentDevice[],
  { chipset, existing }: { readonly chipset: Chipset; readonly existing: readonly DeviceEntry[] },
  errors: string[],
): readonly SentDevice[] {
  const disks = sent.filter(({ device }) => device.type === 'disk');
  const indexedDisks = disks.map(({ field, device }) =>
    toIndexedDisk(field, { ...device, iface: chooseIface(device, chipset) }),
  );
  const existingDisks = existing.filter(({ device }) => device.type === 'disk');
  const indexes = assignDiskIndexes(
    indexedDisks,
    errors,
    existingDisks.map(({ field, device }) => toIndexedDisk(field, device)),
  );
  const assigned = new Map(disks.map((disk, i) => [disk, { iface: indexedDisks[i]?.iface, index: indexes[i] }]));
  return sent.map((item) => ({ ...item, device: { ...item.device, ...assigned.get(item) } }));
}

function toIndexedDisk(field: string, device: HostDevice): IndexedDisk {
  return { field, iface: ifaceOf(device), media: device.device, index: readWholeNumber(device['index']) };
}

function chooseIface(device: HostDevice, chipset: Chipset): string {
  const iface = ifaceOf(device);
  if (iface !== '') return iface;
  // `list` reports the bus in specParams for VMs of launcher pods.
  const bus = device.specParams?.['bus'];
  if (typeof bus === 'string' && IFACES[device.device]?.includes(bus) === true) return bus;
  if (device.device === 'floppy') return 'fdc';
  if (device.device === 'lun') return 'scsi';
  if (device.device === 'cdrom') return chipset === 'q35' ? 'sata' : 'ide';
  return 'virtio';
}

function chooseId(device: HostDevice, usedIds: ReadonlySet<string>): string {
  const { type } = device;
  if (type === 'disk') return `disk-${ifaceOf(device)}${readWholeNumber(device['index']) ?? 0}`;
  if (type === 'interface') return nextNumberedId('nic-net', usedIds);
  if (type === 'controller' && device.device === 'pcie-root-port') return nextNumberedId('rp', usedIds);
  if (isScsiController(device)) return 'scsi0';
  if (isAgentChannel(device)) return AGENT_CHANNEL_ID;
  return (
    (Object.hasOwn(SINGLETON_IDS, type) ? SINGLETON_IDS[type] : undefined) ??
    nextNumberedId(`dev-${toPlainWord(type)}`, usedIds)
  );
}

/**
 * Reports whether the device is the guest agent channel. Channels with other names belong to programs that this host
 * does not have.
 */
export function isAgentChannel({ type, device, name, specParams }: HostDevice): boolean {
  if (type !== 'channel' || device !== 'unix') return false;
  return [undefined, '', AGENT_PORT_NAME].includes(readWord(specParams?.['name'] ?? name));
}

function isScsiController({ type, device, specParams, ...rest }: HostDevice): boolean {
  if (type !== 'controller') return false;
  return device === 'virtio-scsi' || (device === 'scsi' && (specParams?.['model'] ?? rest['model']) === 'virtio-scsi');
}

function nextNumberedId(prefix: string, usedIds: ReadonlySet<string>): string {
  const numbers = [...usedIds].filter((id) => id.startsWith(prefix)).map((id) => Number(id.slice(prefix.length)));
  return `${prefix}${lowestFreeIndex(new Set(numbers))}`;
}

function toPlainWord(type: string): string {
  return /^[a-z][a-z0-9-]{0,30}$/i.test(type) ? type : 'x';
}
