/**
 * A VM in the new format: a list of devices, and in `custom` those that no manager manages (`device_<id>`), as texts in
 * the same format. Texts that are something else are for whoever reads custom properties, and are told back as they are.
 * Pure.
 */
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { MAX_DEVICES } from '#node/host-api/device-entries.ts';
import type { SentDevice } from '#node/host-api/old-format.ts';
import { mapOf, type SentMap } from '#node/host-api/sent-values.ts';

const CUSTOM_PREFIX = 'device_';

export function newDevices({ devices, custom }: SentMap, faults: string[]): readonly SentDevice[] {
  if (!Array.isArray(devices) || devices.length > MAX_DEVICES || !devices.every(isRecord)) {
    faults.push(`devices: expected a list of at most ${MAX_DEVICES} devices`);
    return [];
  }
  const listed = devices.map((device, i) => ({ field: `devices[${i}]`, device: deviceOf(device) }));
  const ids = new Set(listed.map(({ device }) => device.deviceId));
  return [...listed, ...customDevices(custom).filter(({ device }) => !ids.has(device.deviceId))];
}

/** The type has had two names. */
function deviceOf({ deviceType, ...device }: SentMap): HostDevice {
  return { ...device, type: device['type'] ?? deviceType } as unknown as HostDevice;
}

/** What is no device of the new format is left to others. */
function customDevices(custom: unknown): readonly SentDevice[] {
  return Object.entries(mapOf(custom)).flatMap(([key, value]) => {
    const device = key.startsWith(CUSTOM_PREFIX) ? parsed(value) : undefined;
    if (device === undefined || typeof device['type'] !== 'string' || typeof device['device'] !== 'string') return [];
    const deviceId = device['deviceId'] ?? key.slice(CUSTOM_PREFIX.length);
    return [{ field: `custom.${key}`, device: deviceOf({ ...device, deviceId, managed: false }) }];
  });
}

function parsed(value: unknown): SentMap | undefined {
  if (isRecord(value)) return value;
  if (typeof value !== 'string' || !value.startsWith('{')) return undefined;
  try {
    return mapOf(JSON.parse(value));
  } catch {
    return undefined;
  }
}
