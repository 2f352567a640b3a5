/** Checks a description for contradictions and impossible values. Returns all errors at once. Pure. */
import { DISK_BUSES } from '#api/domain/disk.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import { placeKey } from '#formats/address-text.ts';
import { findDuplicates } from '#formats/findings.ts';
import { labelKeyErrors, labelValueErrors, nameErrors } from '#kube/names.ts';
import type { CloudInitPart, DescribedDisk, DescribedNic, MachineDescription } from '#formats/machine.ts';
import { isDeviceId } from '#formats/device-rows.ts';
import { quoteText } from '#lib/text/quote-text.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;
const SERIAL = /^[A-Za-z0-9_.+-]{0,36}$/;
const MAX_DEVICES = 256;
const MAX_ROWS = 1024;
const MAX_LABELS = 256;
/** The limit of Secrets. */
const MAX_CLOUD_INIT_BYTES = 1024 ** 2;
const MAX_CPUS = 512;
const MAX_MEMORY_MIB = 64 * 1024 * 1024;

export function checkDescription(machine: MachineDescription): string[] {
  const { name, uuid, serial, disks, nics, rows, hostname } = machine;
  return [
    ...(name.trim() === '' ? ['the machine has no name'] : []),
    ...(uuid === undefined || UUID.test(uuid) ? [] : [`${quoteText(uuid)} is not a uuid`]),
    ...((serial ?? '').length > 256 ? ['the serial of the machine is longer than 256 characters'] : []),
    ...checkSize(machine),
    ...checkCount('disks', disks.length, MAX_DEVICES),
    ...checkCount('interfaces', nics.length, MAX_DEVICES),
    ...checkCount('devices', rows.length, MAX_ROWS),
    ...findDuplicates(rows.map(({ id }) => id)).map((id) => `two devices have the id ${quoteText(id)}`),
    ...rows
      .filter(({ type, device }) => type === '' || device === '')
      .map(({ id }) => `${quoteText(id)} has no type or device`),
    ...rows.filter(({ id }) => !isDeviceId(id)).map(({ id }) => `${quoteText(id)} is not a valid id of a device`),
    ...[...disks, ...nics]
      .filter(({ name }) => nameErrors('label', name).length > 0)
      .map(({ name }) => `${quoteText(name)} is not a valid name of a device`),
    ...disks.flatMap(checkDisk),
    ...findDuplicates(disks.flatMap(({ file }) => file ?? [])).map(
      (file) => `two disks have the file ${quoteText(file)}`,
    ),
    ...checkState(machine),
    ...checkLabels(machine.labels),
    ...checkLabels(machine.templateLabels),
    ...(hostname === undefined || nameErrors('label', hostname).length === 0
      ? []
      : [`${quoteText(hostname)} is not a valid host name`]),
    ...findDuplicates(disks.flatMap(({ lun }) => lun?.guid ?? lun?.uuid ?? [])).map(
      (id) => `two disks are the LUN ${quoteText(id)}`,
    ),
    ...nics.flatMap(checkNic),
    ...findDuplicates(nics.flatMap(({ mac }) => mac ?? [])).map((mac) => `two interfaces have the MAC address ${mac}`),
    ...checkBootOrders([...disks, ...nics]),
    ...checkAddresses(machine),
  ];
}

function checkSize({ cpu, memoryMib }: MachineDescription): string[] {
  const errors: string[] = [];
  for (const key of ['sockets', 'cores', 'threads'] as const) {
    if (!isCount(cpu[key], MAX_CPUS)) errors.push(`${cpu[key]} is not a valid number of CPU ${key}`);
  }
  if (!isCount(cpu.sockets * cpu.cores * cpu.threads, MAX_CPUS)) errors.push(`there are more than ${MAX_CPUS} CPUs`);
  if (!isCount(memoryMib, MAX_MEMORY_MIB)) errors.push(`${memoryMib} MiB is not a valid memory size`);
  return errors;
}

function isCount(value: number, max: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= max;
}

function checkCount(what: string, count: number, max: number): string[] {
  return count > max ? [`there are ${count} ${what}, more than ${max}`] : [];
}

function checkDisk({ name, media, bus, sizeBytes, serial, lun, file, cloudInit }: DescribedDisk): string[] {
  const errors: string[] = [];
  const label = `disk ${quoteText(name)}`;
  if (sizeBytes !== undefined && (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)) {
    errors.push(`${label}: ${sizeBytes} bytes is not a valid size`);
  }
  if (serial !== undefined && !SERIAL.test(serial)) errors.push(`${label}: ${quoteText(serial)} is not a valid serial`);
  if ((media === 'floppy') !== (bus === 'fdc')) errors.push(`${label}: a ${media} cannot be on the bus ${bus}`);
  if (bus !== 'fdc' && !DISK_BUSES.includes(bus)) errors.push(`${label}: there is no bus ${quoteText(bus)}`);
  if (media === 'cdrom' && bus === 'virtio') errors.push(`${label}: a cdrom cannot be on the bus virtio`);
  if (media === 'lun' && bus !== 'scsi') errors.push(`${label}: a lun must be on the bus scsi`);
  if ((media === 'lun' || lun !== undefined) && (lun?.guid === undefined) === (lun?.uuid === undefined)) {
    errors.push(`${label}: a lun must have either a guid or a uuid`);
  }
  if (cloudInit !== undefined && (lun !== undefined || file !== undefined)) {
    errors.push(`${label}: it has cloud-init data, and also a ${lun === undefined ? 'file' : 'LUN'}`);
  }
  for (const part of [cloudInit?.userData, cloudInit?.networkData]) {
    if (part !== undefined) errors.push(...checkCloudInitPart(part).map((error) => `${label}: ${error}`));
  }
  return errors;
}

function checkCloudInitPart({ base64, secret }: CloudInitPart): string[] {
  const bytes = Buffer.from(base64 ?? '', 'base64');
  return [
    ...(bytes.toString('base64') === (base64 ?? '') ? [] : ['its cloud-init data is not valid base64']),
    ...(bytes.length > MAX_CLOUD_INIT_BYTES ? [`its cloud-init data has more than ${MAX_CLOUD_INIT_BYTES} bytes`] : []),
    ...(secret === undefined || nameErrors('subdomain', secret).length === 0
      ? []
      : [`${quoteText(secret)} is not a valid name of a Secret`]),
    ...(base64 === undefined && secret === undefined ? ['a part of its cloud-init data is missing'] : []),
  ];
}

function checkLabels(labels: Readonly<Record<string, string>> = {}): string[] {
  return [
    ...checkCount('labels', Object.keys(labels).length, MAX_LABELS),
    ...Object.entries(labels)
      .filter(([key, value]) => labelKeyErrors(key).length + labelValueErrors(value).length > 0)
      .map(([key, value]) => `${quoteText(`${key}=${value}`)} is not a valid label`),
  ];
}

function checkState({ state, tpm, firmware, disks }: MachineDescription): string[] {
  if (state === undefined) return [];
  const disk = disks.find(({ file }) => file !== undefined && file === state.file);
  return [
    ...(state.tpm && !tpm ? ['there is a persistent TPM state, but no TPM'] : []),
    ...(state.efi && firmware === 'bios' ? ['there are persistent EFI variables, but the firmware is a BIOS'] : []),
    ...(disk === undefined ? [] : [`the persistent state and the disk ${quoteText(disk.name)} have the same file`]),
    ...((state.sizeBytes ?? 0) > MAX_STATE_ARCHIVE_BYTES ? ['the file of the persistent state is too large'] : []),
  ];
}

function checkNic({ name, mac }: DescribedNic): string[] {
  if (mac === undefined) return [];
  const isUnicast = MAC.test(mac) && (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0 && mac !== '00:00:00:00:00:00';
  return isUnicast
    ? []
    : [`interface ${quoteText(name)}: ${quoteText(mac)} is not a valid MAC address of an interface`];
}

function checkBootOrders(devices: readonly { readonly bootOrder?: number }[]): string[] {
  const orders = devices.flatMap(({ bootOrder }) => bootOrder ?? []);
  return [
    ...orders.filter((order) => !isCount(order, MAX_DEVICES * 4)).map((order) => `${order} is not a valid boot order`),
    ...findDuplicates(orders.map(String)).map((order) => `two devices have the boot order ${order}`),
  ];
}

/**
 * Checks that plugged devices have valid and different addresses. An unplugged one may have the address of another
 * device.
 */
function checkAddresses({ rows, disks }: MachineDescription): string[] {
  const buses = new Map<string, string>(disks.map(({ id, bus }) => [id, bus]));
  const seen = new Map<string, string>();
  return rows.flatMap((row) => {
    const place = row.plugged === false ? undefined : placeKey(row.address);
    if (place === undefined) return [];
    const error = checkAddress(row);
    if (error !== undefined) return [error];
    const key = place.startsWith('drive ') ? `${buses.get(row.id) ?? row.type} ${place}` : place;
    const other = seen.get(key);
    seen.set(key, row.id);
    return other === undefined
      ? []
      : [`${quoteText(other)} and ${quoteText(row.id)} are at the same address (${place})`];
  });
}

const RANGES = new Map<string, Readonly<Record<string, number>>>([
  ['pci', { domain: 0xff_ff, bus: 0xff, slot: 0x1f, function: 7 }],
  ['drive', { controller: 255, bus: 255, target: 255, unit: 16_383 }],
]);

function checkAddress({ id, address = {} }: LearnedDevice): string | undefined {
  const ranges = RANGES.get(address['type'] ?? 'drive');
  for (const [key, max] of Object.entries(ranges ?? {})) {
    const text = address[key] ?? '0';
    if (/^(?:0x[0-9a-f]{1,8}|[0-9]{1,10})$/i.test(text) && Number(text) <= max) continue;
    return `${quoteText(id)}: ${key} ${quoteText(text)} is not valid in an address`;
  }
  return undefined;
}
