/** What is wrong with a device as it was sent, before anything is made of it. Pure. */
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { ifaceOf, modelOf } from '#node/host-api/device-fields.ts';
import { isOneOf } from '#node/host-api/key-rules.ts';
import { isOn, shown, textOf, wholeOf, wordOf } from '#node/host-api/sent-values.ts';

/** What each sort of disk can be on. */
export const IFACES: Readonly<Record<string, readonly string[]>> = {
  disk: ['virtio', 'scsi', 'sata', 'ide'],
  cdrom: ['ide', 'sata', 'scsi'],
  lun: ['scsi'],
  floppy: ['fdc'],
};

export function deviceFaults(field: string, device: HostDevice): string[] {
  const faults: string[] = [];
  const fault = (key: string, value: unknown, expected: string) =>
    faults.push(`${field}.${key}: ${shown(value)}; expected ${expected}`);
  const { address, specParams, bootOrder, deviceId } = device;
  if (wordOf(device.type) === undefined) fault('type', device.type, 'a word');
  if (wordOf(device.device) === undefined) fault('device', device.device, 'a word');
  if (deviceId !== undefined && textOf(deviceId) === undefined) fault('deviceId', deviceId, 'a text');
  if (!isAddress(address)) fault('address', address, "a map of texts, or '' where it is unknown");
  if (specParams !== undefined && !isRecord(specParams)) fault('specParams', specParams, 'a map');
  if (bootOrder !== undefined && bootOrder !== '' && wholeOf(bootOrder) === undefined) {
    fault('bootOrder', bootOrder, 'a whole number');
  }
  if (device.type === 'disk') faults.push(...diskFaults(field, device));
  if (device.type === 'interface') faults.push(...interfaceFaults(field, device));
  return faults;
}

function isAddress(address: unknown): boolean {
  if (address === undefined || address === null || address === '') return true;
  if (!isRecord(address)) return false;
  const values = Object.values(address);
  return values.length <= 16 && values.every((value) => textOf(value) !== undefined);
}

function diskFaults(field: string, disk: HostDevice): string[] {
  const faults: string[] = [];
  const { device, iface, index } = disk;
  const ifaces = Object.hasOwn(IFACES, device) ? IFACES[device] : undefined;
  if (ifaces === undefined) {
    faults.push(`${field}.device: ${shown(device)}; expected one of ${Object.keys(IFACES).join(', ')}`);
  } else if (iface !== undefined && iface !== '' && !ifaces.includes(ifaceOf(disk))) {
    faults.push(`${field}.iface: ${shown(iface)}; expected one of ${ifaces.join(', ')} for a ${device}`);
  }
  if (index !== undefined && wholeOf(index) === undefined) {
    faults.push(`${field}.index: ${shown(index)}; expected a whole number`);
  }
  if (!isOneOf('on', 'off')(disk['propagateErrors'])) {
    faults.push(`${field}.propagateErrors: ${shown(disk['propagateErrors'])}; expected on or off`);
  }
  if (isShared(disk) && !isOn(disk.readonly)) {
    faults.push(`${field}.shared: ${shown(disk['shared'])}; only disks that are read-only can be shared`);
  }
  return faults;
}

function interfaceFaults(field: string, card: HostDevice): string[] {
  const { nicModel, network, macAddr } = card;
  const faults: string[] = [];
  if (modelOf(card) === undefined) {
    faults.push(`${field}.nicModel: ${shown(nicModel)}; expected one of pv, ${INTERFACE_MODELS.join(', ')}`);
  }
  for (const [key, value] of Object.entries({ network, macAddr })) {
    if (value !== undefined && textOf(value) === undefined) faults.push(`${field}.${key}: ${shown(value)} is no text`);
  }
  return faults;
}

function isShared({ shared }: HostDevice): boolean {
  return isOn(shared) || shared === 'shared';
}
