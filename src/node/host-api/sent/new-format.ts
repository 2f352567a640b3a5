/**
 * Parses the devices of a VM in the new format: a list of devices, and in `custom` the unmanaged ones (`device_<id>`),
 * as strings in the same format. Other strings in `custom` are properties for hooks; `list` reports them unchanged.
 * Pure.
 */
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { MAX_DEVICES } from '#node/host-api/sent/device-entries.ts';
import type { SentDevice } from '#node/host-api/sent/old-format.ts';
import { readMap, type SentMap } from '#node/host-api/sent/sent-values.ts';

const CUSTOM_PREFIX = 'device_';

export function parseNewFormat({ devices, custom }: SentMap, errors: string[]): readonly SentDevice[] {
  if (!Array.isArray(devices) || devices.length > MAX_DEVICES || !devices.every(isRecord)) {
    errors.push(`devices: expected a list of at most ${MAX_DEVICES} devices`);
    return [];
  }
  const listed = devices.map((device, i) => ({ field: `devices[${i}]`, device: toHostDevice(device) }));
  const ids = new Set(listed.map(({ device }) => device.deviceId));
  return [...listed, ...parseCustomDevices(custom).filter(({ device }) => !ids.has(device.deviceId))];
}

/** Accepts both names of the type: `type` and the older `deviceType`. */
function toHostDevice({ deviceType, ...device }: SentMap): HostDevice {
  return { ...device, type: device['type'] ?? deviceType } as unknown as HostDevice;
}

/** Skips custom properties that are not devices. */
function parseCustomDevices(custom: unknown): readonly SentDevice[] {
  return Object.entries(readMap(custom)).flatMap(([key, value]) => {
    const device = key.startsWith(CUSTOM_PREFIX) ? parseCustomDevice(value) : undefined;
    if (device === undefined || typeof device['type'] !== 'string' || typeof device['device'] !== 'string') return [];
    const deviceId = device['deviceId'] ?? key.slice(CUSTOM_PREFIX.length);
    return [{ field: `custom.${key}`, device: toHostDevice({ ...device, deviceId, managed: false }) }];
  });
}

function parseCustomDevice(value: unknown): SentMap | undefined {
  if (isRecord(value)) return value;
  if (typeof value !== 'string' || !value.startsWith('{')) return undefined;
  try {
    return readMap(JSON.parse(value));
  } catch {
    return undefined;
  }
}
