/** A whole VM as it was sent to `create`, in either format: what it is, and its devices. All faults are found at once. */
import { chipsetOf } from '#api/chipset.ts';
import { deviceHash } from '#api/device-hash.ts';
import { learnedDeviceOf } from '#api/host-api.ts';
import { bootOrders } from '#node/host-api/boot-string.ts';
import { createFindings } from '#node/host-api/create-keys.ts';
import { deviceEntries, isAgentChannel, type DeviceEntry } from '#node/host-api/device-entries.ts';
import { bootOrderOf } from '#node/host-api/device-fields.ts';
import { deviceFindings } from '#node/host-api/device-keys.ts';
import { findKeys, merged, noted, type KeyFindings } from '#node/host-api/key-rules.ts';
import { newDevices } from '#node/host-api/new-format.ts';
import { oldDevices, type SentDevice } from '#node/host-api/old-format.ts';
import { isOn, isTooDeep, mapOf, shown, wordOf, type SentMap } from '#node/host-api/sent-values.ts';
import { vmConf, type VmConf } from '#node/host-api/vm-conf.ts';

export interface SentVm {
  readonly conf: VmConf;
  readonly entries: readonly DeviceEntry[];
  /** What is kept of it to be told back. */
  readonly sent: SentMap;
  /** What was sent and is not used. */
  readonly notes: readonly string[];
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
  const listed = isNew ? newDevices(parameters, faults) : oldDevices(parameters, faults);
  const devices = withAgentChannel(listed, parameters);
  const found = merged(createFindings(parameters), ...unusedOf(listed, { isNew }), customFindings(parameters, listed));
  faults.push(...found.faults);
  const booted = inBootOrder(devices, isNew ? conf.boot : conf.boot || OLD_BOOT);
  const entries = deviceEntries(booted, { chipset: chipsetOf(conf.machine) ?? 'i440fx' }, faults);
  faults.push(...hashFaults(parameters, listed));
  const { devices: _devices, hash: _hash, status: _status, pid: _pid, deviceRevision: _revision, ...sent } = parameters;
  return faults.length === 0 ? { conf, entries, sent, notes: found.notes } : { faults };
}

/** `vmchannel` asks for the line to the guest agent, unless it is among the devices. */
function withAgentChannel(devices: readonly SentDevice[], { vmchannel }: SentMap): readonly SentDevice[] {
  if (!isOn(vmchannel) || devices.some(({ device }) => isAgentChannel(device))) return devices;
  return [...devices, { field: 'vmchannel', device: { type: 'channel', device: 'unix', address: '' } }];
}

/** Devices that the flat format only implies say nothing of their own. */
function unusedOf(devices: readonly SentDevice[], { isNew }: { readonly isNew: boolean }): readonly KeyFindings[] {
  const sent = isNew ? devices : devices.filter(({ field }) => field.startsWith('drives['));
  return sent.map(({ field, device }) => deviceFindings(field, device));
}

/** Custom properties that are no devices. */
function customFindings({ custom }: SentMap, devices: readonly SentDevice[]): KeyFindings {
  const fields = new Set(devices.map(({ field }) => field));
  const others = Object.keys(mapOf(custom)).filter((key) => !fields.has(`custom.${key}`));
  return findKeys(
    Object.fromEntries(others.map((key) => [key, true])),
    noted('it is for hooks, and this host runs none', others),
    'custom.',
  );
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
