/** A whole VM as it was sent to `create`, in either format: what it is, and its devices. All faults are found at once. */
import { chipsetOf } from '#api/chipset.ts';
import { deviceHash } from '#api/device-hash.ts';
import { learnedDeviceOf } from '#api/host-api.ts';
import { bootOrders } from '#node/host-api/boot-string.ts';
import { deviceEntries, type DeviceEntry } from '#node/host-api/device-entries.ts';
import { bootOrderOf } from '#node/host-api/device-fields.ts';
import { newDevices } from '#node/host-api/new-format.ts';
import { oldDevices, type SentDevice } from '#node/host-api/old-format.ts';
import { isTooDeep, shown, wordOf, type SentMap } from '#node/host-api/sent-values.ts';
import { vmConf, type VmConf } from '#node/host-api/vm-conf.ts';

export interface SentVm {
  readonly conf: VmConf;
  readonly entries: readonly DeviceEntry[];
  /** What is kept of it to be told back. */
  readonly sent: SentMap;
}

/** What we keep of a VM, and tell again with every list. */
const MAX_BYTES = 256 * 1024;
/** Guests of old that say nothing boot from their disk. */
const OLD_BOOT = 'c';

export function readVm(parameters: SentMap): SentVm | { readonly faults: readonly string[] } {
  if (isTooDeep(parameters)) return { faults: ['the parameters are too deep'] };
  const bytes = Buffer.byteLength(JSON.stringify(parameters));
  if (bytes > MAX_BYTES) return { faults: [`the parameters have ${bytes} bytes; expected at most ${MAX_BYTES}`] };
  const faults: string[] = [];
  const conf = vmConf(parameters, faults);
  const isNew = 'devices' in parameters;
  const devices = isNew ? newDevices(parameters, faults) : oldDevices(parameters, faults);
  const booted = inBootOrder(devices, isNew ? conf.boot : conf.boot || OLD_BOOT);
  const entries = deviceEntries(booted, { chipset: chipsetOf(conf.machine) ?? 'i440fx' }, faults);
  faults.push(...hashFaults(parameters, devices));
  const { devices: _devices, hash: _hash, status: _status, pid: _pid, deviceRevision: _revision, ...sent } = parameters;
  return faults.length === 0 ? { conf, entries, sent } : { faults };
}

/** What each device says for itself stands above the string. */
function inBootOrder(devices: readonly SentDevice[], boot: string): readonly SentDevice[] {
  if (boot === '' || devices.some(({ device }) => bootOrderOf(device) !== undefined)) return devices;
  const orders = bootOrders(
    boot,
    devices.map(({ device, boots }) => ({
      type: device.type,
      device: device.device,
      name: wordOf(device.name),
      boots,
      managed: device.managed,
    })),
  );
  return devices.map((item, i) => {
    const order = orders[i] ?? 0;
    return order === 0 ? item : { ...item, device: { ...item.device, bootOrder: order } };
  });
}

/** It says which devices the sender means: it must be theirs. */
function hashFaults({ hash }: SentMap, devices: readonly SentDevice[]): string[] {
  if (hash === undefined || hash === '') return [];
  const actual = deviceHash(devices.flatMap(({ device }) => learnedDeviceOf(device) ?? []));
  return hash === actual ? [] : [`hash: ${shown(hash)} is not that of the devices, which is "${actual}"`];
}
