/**
 * The devices of a VM of the host API. Each keeps what was sent of it, the deviceId of its manager too, and has an id of
 * ours, which is its id in QEMU: disks by bus and index, network cards by number, others by type.
 */
import { AGENT_PORT_NAME } from '#api/agent-channel.ts';
import type { Chipset } from '#api/chipset.ts';
import { derivedMac } from '#api/derived-mac.ts';
import type { HostDevice } from '#api/host-api.ts';
import { newUid } from '#lib/ids.ts';
import { AGENT_CHANNEL_ID } from '#node/definition/devices/agent-channel.ts';
import { deviceFaults, IFACES } from '#node/host-api/device-faults.ts';
import { ifaceOf } from '#node/host-api/device-fields.ts';
import { giveIndexes, nextIndex, type IndexedDisk } from '#node/host-api/disk-index.ts';
import { shown, wholeOf, wordOf } from '#node/host-api/sent-values.ts';
import type { SentDevice } from '#node/host-api/old-format.ts';

export interface DeviceEntry {
  /** Ours. */
  readonly id: string;
  /** Where it stood in what was sent, for messages. */
  readonly field: string;
  /** As it is told back: as it was sent, with type, device, deviceId and index for sure. */
  readonly device: HostDevice & { readonly deviceId: string };
}

export const MAX_DEVICES = 200;

/** What a guest has one of, under a name that never changes. */
const SINGLE: Readonly<Record<string, string>> = {
  balloon: 'balloon0',
  rng: 'rng0',
  tpm: 'tpm0',
  console: 'serial0',
};

/** All of them; `before` are those that the guest has already. What is wrong with them is added to `faults`. */
export function deviceEntries(
  sent: readonly SentDevice[],
  { chipset, before = [] }: { readonly chipset: Chipset; readonly before?: readonly DeviceEntry[] },
  faults: string[],
): readonly DeviceEntry[] {
  if (sent.length + before.length > MAX_DEVICES) {
    faults.push(`devices: ${sent.length + before.length} are too many; expected at most ${MAX_DEVICES}`);
    return [];
  }
  const found = faults.length;
  for (const { field, device } of sent) faults.push(...deviceFaults(field, device));
  if (faults.length > found) return [];

  const complete = withIndexes(sent, { chipset, before }, faults);
  const taken = new Set(before.map(({ id }) => id));
  const deviceIds = new Set(before.map(({ device }) => device.deviceId));
  return complete.map(({ field, device }) => {
    const id = idFor(device, taken);
    // Two disks of one index are told as such.
    if (taken.has(id) && device.type !== 'disk') faults.push(`${field}: a guest has one ${device.device} at most`);
    taken.add(id);
    const deviceId = wordOf(device.deviceId) ?? newUid();
    if (deviceIds.has(deviceId)) faults.push(`${field}.deviceId: ${shown(deviceId)} is that of another device, too`);
    deviceIds.add(deviceId);
    return { id, field, device: { ...device, ...(device.type === 'interface' && macOf(device, deviceId)), deviceId } };
  });
}

/** A network card without a MAC address has the one that follows from its id. */
function macOf({ macAddr }: HostDevice, deviceId: string): { readonly macAddr: string } {
  return { macAddr: wordOf(macAddr) ?? derivedMac(deviceId, '') };
}

function withIndexes(
  sent: readonly SentDevice[],
  { chipset, before }: { readonly chipset: Chipset; readonly before: readonly DeviceEntry[] },
  faults: string[],
): readonly SentDevice[] {
  const disks = sent.filter(({ device }) => device.type === 'disk');
  const wishes = disks.map(({ field, device }) => indexed(field, { ...device, iface: ifaceFor(device, chipset) }));
  const there = before.filter(({ device }) => device.type === 'disk');
  const indexes = giveIndexes(
    wishes,
    faults,
    there.map(({ field, device }) => indexed(field, device)),
  );
  const given = new Map(disks.map((disk, i) => [disk, { iface: wishes[i]?.iface, index: indexes[i] }]));
  return sent.map((item) => ({ ...item, device: { ...item.device, ...given.get(item) } }));
}

function indexed(field: string, device: HostDevice): IndexedDisk {
  return { field, iface: ifaceOf(device), media: device.device, index: wholeOf(device['index']) };
}

function ifaceFor(device: HostDevice, chipset: Chipset): string {
  const iface = ifaceOf(device);
  if (iface !== '') return iface;
  // As VMs of launcher pods are listed.
  const bus = device.specParams?.['bus'];
  if (typeof bus === 'string' && IFACES[device.device]?.includes(bus) === true) return bus;
  if (device.device === 'floppy') return 'fdc';
  if (device.device === 'lun') return 'scsi';
  if (device.device === 'cdrom') return chipset === 'q35' ? 'sata' : 'ide';
  return 'virtio';
}

function idFor(device: HostDevice, taken: ReadonlySet<string>): string {
  const { type } = device;
  if (type === 'disk') return `disk-${ifaceOf(device)}${wholeOf(device['index']) ?? 0}`;
  if (type === 'interface') return numbered('nic-net', taken);
  if (type === 'controller' && device.device === 'pcie-root-port') return numbered('rp', taken);
  if (isScsiController(device)) return 'scsi0';
  if (isAgentChannel(device)) return AGENT_CHANNEL_ID;
  return (Object.hasOwn(SINGLE, type) ? SINGLE[type] : undefined) ?? numbered(`dev-${plainWord(type)}`, taken);
}

/** The line to the guest agent. Channels of other names are for programs that this host does not have. */
export function isAgentChannel({ type, device, name, specParams }: HostDevice): boolean {
  if (type !== 'channel' || device !== 'unix') return false;
  return [undefined, '', AGENT_PORT_NAME].includes(wordOf(specParams?.['name'] ?? name));
}

export function isScsiController({ type, device, specParams, ...rest }: HostDevice): boolean {
  if (type !== 'controller') return false;
  return device === 'virtio-scsi' || (device === 'scsi' && (specParams?.['model'] ?? rest['model']) === 'virtio-scsi');
}

function numbered(prefix: string, taken: ReadonlySet<string>): string {
  const numbers = [...taken].filter((id) => id.startsWith(prefix)).map((id) => Number(id.slice(prefix.length)));
  return `${prefix}${nextIndex(new Set(numbers))}`;
}

function plainWord(type: string): string {
  return /^[a-z][a-z0-9-]{0,30}$/i.test(type) ? type : 'x';
}
