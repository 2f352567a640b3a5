/**
 * A domain as `list` tells it: with what was sent where the host API made it, and with the devices that are really there.
 * Hash and devices are of one reading, and sent back together they fit.
 */
import { deviceHash } from '#api/device-hash.ts';
import { hostDeviceOf, learnedDeviceOf, type HostDevice, type HostVm } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import type { Reading } from '#node/domains/device-book.ts';
import { bootString } from '#node/host-api/boot-string.ts';
import { bootOrderOf } from '#node/host-api/device-fields.ts';
import type { ReadParts } from '#node/host-api/host-parts.ts';
import type { HostVmRecord } from '#node/host-api/vm-book.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';

/** Undefined where it was removed this very moment. */
export function toldVm(domain: Domain, parts: ReadParts): HostVm | undefined {
  const definition = parts.hypervisor.inspect(domain.id)?.definition;
  if (definition === undefined) return undefined;
  const reading = parts.book.get(domain.id);
  const record = parts.vms?.get(domain.id);
  const { sockets, cores, threads } = definition.cpu;
  const hash = toldHash(reading, record);
  const devices = toldDevices(reading?.devices ?? learnedFrom(definition), record);
  return {
    ...record?.sent,
    ...(record === undefined ? {} : { boot: bootOf(devices) }),
    vmId: domain.id,
    vmName: record?.vmName ?? domain.name,
    status: statusOf(domain),
    ...(domain.pid === undefined ? {} : { pid: domain.pid }),
    emulatedMachine: domain.machine,
    // Guests under TCG get a little less than the MiB that they were given.
    memSize: Math.ceil(definition.memoryKib / 1024),
    smp: String(sockets * cores * threads),
    uuid: definition.firmware.uuid,
    ...(reading === undefined || hash === undefined ? {} : { hash, deviceRevision: reading.revision }),
    devices,
  };
}

export function statusOf({ current }: Domain): HostVm['status'] {
  if (current.state === 'ended') return 'Down';
  return current.state === 'paused' ? 'Paused' : 'Up';
}

/** Of readings that are told again and again while nothing changes. */
const hashes = new WeakMap<Reading, { readonly record: HostVmRecord; readonly hash: string }>();

export function toldHash(reading: Reading | undefined, record: HostVmRecord | undefined): string | undefined {
  if (reading === undefined || record === undefined) return reading?.hash;
  const known = hashes.get(reading);
  if (known?.record === record) return known.hash;
  const hash = deviceHash(toldDevices(reading.devices, record).flatMap((device) => learnedDeviceOf(device) ?? []));
  hashes.set(reading, { record, hash });
  return hash;
}

/** Only what the hypervisor has; what was sent and is not there is not told. */
function toldDevices(learned: readonly LearnedDevice[], record: HostVmRecord | undefined): readonly HostDevice[] {
  const sent = new Map(record?.entries.map(({ id, device }) => [id, device]));
  return learned.map((device) => {
    const entry = sent.get(device.id);
    if (entry === undefined) return hostDeviceOf(device);
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

function bootOf(devices: readonly HostDevice[]): string {
  return bootString(devices.map(({ type, device, ...rest }) => ({ type, device, bootOrder: bootOrderOf(rest) })));
}
