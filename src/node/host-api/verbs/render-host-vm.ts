/**
 * Renders a domain for `list`: the keys that were sent to `create`, if the host API created it, and the devices that
 * the hypervisor has. Hash and devices come from the same reading, so both can be sent back to `create`.
 */
import { deviceHash } from '#api/devices/device-hash.ts';
import { toHostDevice, toLearnedDevice, type HostDevice, type HostVm } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import type { DomainDeviceReading } from '#node/guests/device-readings.ts';
import { bootString } from '#node/host-api/sent/boot-string.ts';
import { sentBootOrderOf } from '#node/host-api/sent/device-fields.ts';
import type { ReadParts } from '#node/host-api/host-parts.ts';
import type { HostVmRecord } from '#node/host-api/host-vm-records.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';

/** Returns undefined if the domain was removed meanwhile. */
export function renderHostVm(domain: DomainInfo, parts: ReadParts): HostVm | undefined {
  const definition = parts.hypervisor.inspect(domain.id)?.definition;
  if (definition === undefined) return undefined;
  const reading = parts.readings.get(domain.id);
  const record = parts.vms?.get(domain.id);
  const { sockets, cores, threads } = definition.cpu;
  const hash = reportedHash(reading, record);
  const devices = renderDevices(reading?.devices ?? toLearnedDevices(definition), record);
  return {
    ...record?.sent,
    ...(record === undefined ? {} : { boot: renderBootString(devices) }),
    vmId: domain.id,
    vmName: record?.vmName ?? domain.name,
    status: hostVmStatus(domain),
    ...(domain.pid === undefined ? {} : { pid: domain.pid }),
    emulatedMachine: domain.machine,
    // Guests under TCG get slightly less memory than the MiB of the spec, so this rounds up.
    memSize: Math.ceil(definition.memoryKib / 1024),
    smp: String(sockets * cores * threads),
    uuid: definition.firmware.uuid,
    ...(reading === undefined || hash === undefined ? {} : { hash, deviceRevision: reading.revision }),
    devices,
  };
}

export function hostVmStatus({ current }: DomainInfo): HostVm['status'] {
  if (current.state === 'ended') return 'Down';
  return current.state === 'paused' ? 'Paused' : 'Up';
}

/** Caches hashes, because statistics are requested often and readings rarely change. */
const hashCache = new WeakMap<DomainDeviceReading, { readonly record: HostVmRecord; readonly hash: string }>();

export function reportedHash(
  reading: DomainDeviceReading | undefined,
  record: HostVmRecord | undefined,
): string | undefined {
  if (reading === undefined || record === undefined) return reading?.hash;
  const known = hashCache.get(reading);
  if (known?.record === record) return known.hash;
  const hash = deviceHash(renderDevices(reading.devices, record).flatMap((device) => toLearnedDevice(device) ?? []));
  hashCache.set(reading, { record, hash });
  return hash;
}

/** Renders the devices that the hypervisor has. A device that was sent but is not present is omitted. */
function renderDevices(learned: readonly LearnedDevice[], record: HostVmRecord | undefined): readonly HostDevice[] {
  const sent = new Map(record?.entries.map(({ id, device }) => [id, device]));
  return learned.map((device) => {
    const entry = sent.get(device.id);
    if (entry === undefined) return toHostDevice(device);
    const { bootOrder, managed } = device;
    return {
      ...entry,
      alias: device.id,
      address: device.address ?? '',
      ...(bootOrder === undefined ? {} : { bootOrder }),
      ...(managed === undefined ? {} : { managed: entry.managed ?? managed }),
    };
  });
}

function renderBootString(devices: readonly HostDevice[]): string {
  return bootString(devices.map(({ type, device, ...rest }) => ({ type, device, bootOrder: sentBootOrderOf(rest) })));
}
