/** Parses the VM that was sent to `create`, in the old or new format. Returns all errors at once. */
import { chipsetOf } from '#api/devices/chipset.ts';
import { deviceHash } from '#api/devices/device-hash.ts';
import { toLearnedDevice } from '#api/host-api.ts';
import { bootOrders } from '#node/host-api/sent/boot-string.ts';
import { checkCreateKeys } from '#node/host-api/sent/create-keys.ts';
import { buildDeviceEntries, isAgentChannel, type DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sentBootOrderOf } from '#node/host-api/sent/device-fields.ts';
import { checkDeviceKeys } from '#node/host-api/sent/device-keys.ts';
import { checkKeys, mergeFindings, notedKeys, type KeyFindings } from '#node/host-api/sent/key-rules.ts';
import { parseNewFormat } from '#node/host-api/sent/new-format.ts';
import { parseOldFormat, type SentDevice } from '#node/host-api/sent/old-format.ts';
import {
  isEnabled,
  isTooDeep,
  readMap,
  quoteSentValue,
  readWord,
  type SentMap,
} from '#node/host-api/sent/sent-values.ts';
import { parseVmConf, type VmConf } from '#node/host-api/sent/vm-conf.ts';

export interface SentVm {
  readonly conf: VmConf;
  readonly entries: readonly DeviceEntry[];
  /** The keys that are recorded, so that `list` can report them. */
  readonly sent: SentMap;
  /** Notes about keys that are not used. */
  readonly notes: readonly string[];
}

/** Bounds the record of a VM, which every `list` reports. */
const MAX_BYTES = 256 * 1024;
/** The default boot string of the old format: the disk. */
const OLD_FORMAT_BOOT = 'c';

export function parseSentVm(parameters: SentMap): SentVm | { readonly errors: readonly string[] } {
  if (isTooDeep(parameters)) return { errors: ['the parameters are nested too deeply'] };
  const bytes = Buffer.byteLength(JSON.stringify(parameters));
  if (bytes > MAX_BYTES) return { errors: [`the parameters have ${bytes} bytes; expected at most ${MAX_BYTES}`] };
  const errors: string[] = [];
  const conf = parseVmConf(parameters, errors);
  const isNew = 'devices' in parameters;
  const listed = isNew ? parseNewFormat(parameters, errors) : parseOldFormat(parameters, errors);
  const devices = withAgentChannel(listed, parameters);
  const found = mergeFindings(
    checkCreateKeys(parameters),
    ...checkAllDeviceKeys(listed, { isNew }),
    checkCustomKeys(parameters, listed),
  );
  errors.push(...found.errors);
  const booted = applyBootString(devices, isNew ? conf.boot : conf.boot || OLD_FORMAT_BOOT);
  const entries = buildDeviceEntries(booted, { chipset: chipsetOf(conf.machine) ?? 'i440fx' }, errors);
  errors.push(...checkHash(parameters, listed));
  const { devices: _devices, hash: _hash, status: _status, pid: _pid, deviceRevision: _revision, ...sent } = parameters;
  return errors.length === 0 ? { conf, entries, sent, notes: found.notes } : { errors };
}

/** Adds the guest agent channel if `vmchannel` is on and the channel is not among the devices. */
function withAgentChannel(devices: readonly SentDevice[], { vmchannel }: SentMap): readonly SentDevice[] {
  if (!isEnabled(vmchannel) || devices.some(({ device }) => isAgentChannel(device))) return devices;
  return [...devices, { field: 'vmchannel', device: { type: 'channel', device: 'unix', address: '' } }];
}

/** Checks the keys of all devices. In the old format, only drives have keys of their own. */
function checkAllDeviceKeys(
  devices: readonly SentDevice[],
  { isNew }: { readonly isNew: boolean },
): readonly KeyFindings[] {
  const sent = isNew ? devices : devices.filter(({ field }) => field.startsWith('drives['));
  return sent.map(({ field, device }) => checkDeviceKeys(field, device));
}

/** Returns a note for each custom property that is not a device. */
function checkCustomKeys({ custom }: SentMap, devices: readonly SentDevice[]): KeyFindings {
  const fields = new Set(devices.map(({ field }) => field));
  const others = Object.keys(readMap(custom)).filter((key) => !fields.has(`custom.${key}`));
  return checkKeys(
    Object.fromEntries(others.map((key) => [key, true])),
    notedKeys('it is for hooks, and this host runs none', others),
    'custom.',
  );
}

/** Converts the boot string to boot orders, unless a device already has a boot order. */
function applyBootString(devices: readonly SentDevice[], boot: string): readonly SentDevice[] {
  if (boot === '' || devices.some(({ device }) => sentBootOrderOf(device) !== undefined)) return devices;
  const orders = bootOrders(
    boot,
    devices.map(({ device, isBootDisk }) => ({
      type: device.type,
      device: device.device,
      name: readWord(device.name),
      isBootDisk,
      managed: device.managed,
    })),
  );
  return devices.map((item, i) => {
    const order = orders[i] ?? 0;
    return order === 0 ? item : { ...item, device: { ...item.device, bootOrder: order } };
  });
}

/** Checks that the sent hash, if any, is the hash of the sent devices. */
function checkHash({ hash }: SentMap, devices: readonly SentDevice[]): string[] {
  if (hash === undefined || hash === '') return [];
  const actual = deviceHash(devices.flatMap(({ device }) => toLearnedDevice(device) ?? []));
  return hash === actual ? [] : [`hash: ${quoteSentValue(hash)}; the hash of the devices is "${actual}"`];
}
