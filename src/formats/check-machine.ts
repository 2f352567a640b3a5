/** What makes a description impossible: contradictions within it, and what no machine can be. All are told at once. Pure. */
import { DISK_BUSES } from '#api/domain/disk.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/snapshot-state.ts';
import { placeOf } from '#formats/address-text.ts';
import { quoted, repeated } from '#formats/faults.ts';
import { nameErrors } from '#kube/names.ts';
import type { DescribedDisk, DescribedNic, MachineDescription } from '#formats/machine.ts';
import { isDeviceId } from '#formats/device-rows.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;
const SERIAL = /^[A-Za-z0-9_.+-]{0,36}$/;
const MAX_DEVICES = 256;
const MAX_ROWS = 1024;
const MAX_CPUS = 512;
const MAX_MEMORY_MIB = 64 * 1024 * 1024;

export function machineFaults(machine: MachineDescription): string[] {
  const { name, uuid, serial, disks, nics, rows } = machine;
  return [
    ...(name.trim() === '' ? ['the machine has no name'] : []),
    ...(uuid === undefined || UUID.test(uuid) ? [] : [`the uuid ${quoted(uuid)} is none`]),
    ...((serial ?? '').length > 256 ? ['the serial of the machine is longer than 256 characters'] : []),
    ...sizeFaults(machine),
    ...tooMany('disks', disks.length, MAX_DEVICES),
    ...tooMany('interfaces', nics.length, MAX_DEVICES),
    ...tooMany('devices', rows.length, MAX_ROWS),
    ...repeated(rows.map(({ id }) => id)).map((id) => `the id ${quoted(id)} is there twice`),
    ...rows
      .filter(({ type, device }) => type === '' || device === '')
      .map(({ id }) => `${quoted(id)} says no type or device`),
    ...rows.filter(({ id }) => !isDeviceId(id)).map(({ id }) => `${quoted(id)} is no id of a device`),
    ...[...disks, ...nics]
      .filter(({ name }) => nameErrors('label', name).length > 0)
      .map(({ name }) => `${quoted(name)} is no name of a device`),
    ...disks.flatMap(diskFaults),
    ...repeated(disks.flatMap(({ file }) => file ?? [])).map((file) => `two disks have the file ${quoted(file)}`),
    ...stateFaults(machine),
    ...repeated(disks.flatMap(({ lun }) => lun?.guid ?? lun?.uuid ?? [])).map(
      (id) => `two disks are the LUN ${quoted(id)}`,
    ),
    ...nics.flatMap(nicFaults),
    ...repeated(nics.flatMap(({ mac }) => mac ?? [])).map((mac) => `two interfaces have the MAC address ${mac}`),
    ...bootFaults([...disks, ...nics]),
    ...placeFaults(machine),
  ];
}

function sizeFaults({ cpu, memoryMib }: MachineDescription): string[] {
  const faults: string[] = [];
  for (const key of ['sockets', 'cores', 'threads'] as const) {
    if (!isCount(cpu[key], MAX_CPUS)) faults.push(`${cpu[key]} ${key} of CPUs are not possible`);
  }
  if (!isCount(cpu.sockets * cpu.cores * cpu.threads, MAX_CPUS)) faults.push(`there are more than ${MAX_CPUS} CPUs`);
  if (!isCount(memoryMib, MAX_MEMORY_MIB)) faults.push(`${memoryMib} MiB of memory are not possible`);
  return faults;
}

function isCount(value: number, max: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= max;
}

function tooMany(what: string, count: number, max: number): string[] {
  return count > max ? [`there are ${count} ${what}, more than ${max}`] : [];
}

function diskFaults({ name, media, bus, sizeBytes, serial, lun }: DescribedDisk): string[] {
  const faults: string[] = [];
  const who = `disk ${quoted(name)}`;
  if (sizeBytes !== undefined && (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)) {
    faults.push(`${who}: a size of ${sizeBytes} bytes is not possible`);
  }
  if (serial !== undefined && !SERIAL.test(serial)) faults.push(`${who}: the serial ${quoted(serial)} is not possible`);
  if ((media === 'floppy') !== (bus === 'fdc')) faults.push(`${who}: a ${media} cannot be on the bus ${bus}`);
  if (bus !== 'fdc' && !DISK_BUSES.includes(bus)) faults.push(`${who}: there is no bus ${quoted(bus)}`);
  if (media === 'cdrom' && bus === 'virtio') faults.push(`${who}: a cdrom cannot be on the bus virtio`);
  if (media === 'lun' && bus !== 'scsi') faults.push(`${who}: a lun is on the bus scsi and on no other`);
  if ((media === 'lun' || lun !== undefined) && (lun?.guid === undefined) === (lun?.uuid === undefined)) {
    faults.push(`${who}: a lun has a guid or a uuid`);
  }
  return faults;
}

function stateFaults({ state, tpm, firmware, disks }: MachineDescription): string[] {
  if (state === undefined) return [];
  const disk = disks.find(({ file }) => file !== undefined && file === state.file);
  return [
    ...(state.tpm && !tpm ? ['the state of a TPM is kept, but there is none'] : []),
    ...(state.efi && firmware === 'bios' ? ['EFI variables are kept, but the firmware is a BIOS'] : []),
    ...(disk === undefined ? [] : [`the persistent state is in the file of the disk ${quoted(disk.name)}`]),
    ...((state.sizeBytes ?? 0) > MAX_STATE_ARCHIVE_BYTES ? ['the file of the persistent state is too large'] : []),
  ];
}

function nicFaults({ name, mac }: DescribedNic): string[] {
  if (mac === undefined) return [];
  const isUnicast = MAC.test(mac) && (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0 && mac !== '00:00:00:00:00:00';
  return isUnicast ? [] : [`interface ${quoted(name)}: ${quoted(mac)} is no MAC address of an interface`];
}

function bootFaults(devices: readonly { readonly bootOrder?: number }[]): string[] {
  const orders = devices.flatMap(({ bootOrder }) => bootOrder ?? []);
  return [
    ...orders
      .filter((order) => !isCount(order, MAX_DEVICES * 4))
      .map((order) => `the boot order ${order} is not possible`),
    ...repeated(orders.map(String)).map((order) => `two devices have the boot order ${order}`),
  ];
}

/** What is not plugged keeps an address that others may have meanwhile. */
function placeFaults({ rows, disks }: MachineDescription): string[] {
  const buses = new Map<string, string>(disks.map(({ id, bus }) => [id, bus]));
  const seen = new Map<string, string>();
  return rows.flatMap((row) => {
    const place = row.plugged === false ? undefined : placeOf(row.address);
    if (place === undefined) return [];
    const fault = addressFault(row);
    if (fault !== undefined) return [fault];
    const key = place.startsWith('drive ') ? `${buses.get(row.id) ?? row.type} ${place}` : place;
    const other = seen.get(key);
    seen.set(key, row.id);
    return other === undefined ? [] : [`${quoted(other)} and ${quoted(row.id)} are at the same address (${place})`];
  });
}

const RANGES = new Map<string, Readonly<Record<string, number>>>([
  ['pci', { domain: 0xff_ff, bus: 0xff, slot: 0x1f, function: 7 }],
  ['drive', { controller: 255, bus: 255, target: 255, unit: 16_383 }],
]);

function addressFault({ id, address = {} }: LearnedDevice): string | undefined {
  const ranges = RANGES.get(address['type'] ?? 'drive');
  for (const [key, max] of Object.entries(ranges ?? {})) {
    const text = address[key] ?? '0';
    if (/^(?:0x[0-9a-f]{1,8}|[0-9]{1,10})$/i.test(text) && Number(text) <= max) continue;
    return `${quoted(id)}: ${key} ${quoted(text)} is no part of an address`;
  }
  return undefined;
}
