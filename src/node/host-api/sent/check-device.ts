/** Checks the values of a device as it was sent, before it becomes an entry. Pure. */
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { ifaceOf, nicModelOf } from '#node/host-api/sent/device-fields.ts';
import { isBlankOrOneOf } from '#node/host-api/sent/key-rules.ts';
import { isEnabled, quoteSentValue, readText, readWholeNumber, readWord } from '#node/host-api/sent/sent-values.ts';

/** The buses on which each kind of disk can be. */
export const IFACES: Readonly<Record<string, readonly string[]>> = {
  disk: ['virtio', 'scsi', 'sata', 'ide'],
  cdrom: ['ide', 'sata', 'scsi'],
  lun: ['scsi'],
  floppy: ['fdc'],
};

export function checkDevice(field: string, device: HostDevice): string[] {
  const errors: string[] = [];
  const addError = (key: string, value: unknown, expected: string) =>
    errors.push(`${field}.${key}: ${quoteSentValue(value)}; expected ${expected}`);
  const { address, specParams, bootOrder, deviceId } = device;
  if (readWord(device.type) === undefined) addError('type', device.type, 'a word');
  if (readWord(device.device) === undefined) addError('device', device.device, 'a word');
  if (deviceId !== undefined && readText(deviceId) === undefined) addError('deviceId', deviceId, 'a string');
  if (!isAddress(address)) addError('address', address, "a map of strings, or '' if it is unknown");
  if (specParams !== undefined && !isRecord(specParams)) addError('specParams', specParams, 'a map');
  if (bootOrder !== undefined && bootOrder !== '' && readWholeNumber(bootOrder) === undefined) {
    addError('bootOrder', bootOrder, 'a whole number');
  }
  if (device.type === 'disk') errors.push(...checkDisk(field, device));
  if (device.type === 'interface') errors.push(...checkInterface(field, device));
  return errors;
}

function isAddress(address: unknown): boolean {
  if (address === undefined || address === null || address === '') return true;
  if (!isRecord(address)) return false;
  const values = Object.values(address);
  return values.length <= 16 && values.every((value) => readText(value) !== undefined);
}

function checkDisk(field: string, disk: HostDevice): string[] {
  const errors: string[] = [];
  const { device, iface, index } = disk;
  const ifaces = Object.hasOwn(IFACES, device) ? IFACES[device] : undefined;
  if (ifaces === undefined) {
    errors.push(`${field}.device: ${quoteSentValue(device)}; expected one of ${Object.keys(IFACES).join(', ')}`);
  } else if (iface !== undefined && iface !== '' && !ifaces.includes(ifaceOf(disk))) {
    errors.push(`${field}.iface: ${quoteSentValue(iface)}; expected one of ${ifaces.join(', ')} for a ${device}`);
  }
  if (index !== undefined && readWholeNumber(index) === undefined) {
    errors.push(`${field}.index: ${quoteSentValue(index)}; expected a whole number`);
  }
  if (!isBlankOrOneOf('on', 'off')(disk['propagateErrors'])) {
    errors.push(`${field}.propagateErrors: ${quoteSentValue(disk['propagateErrors'])}; expected on or off`);
  }
  if (isShared(disk) && !isEnabled(disk.readonly)) {
    errors.push(`${field}.shared: ${quoteSentValue(disk['shared'])}; only read-only disks can be shared`);
  }
  return errors;
}

function checkInterface(field: string, card: HostDevice): string[] {
  const { nicModel, network, macAddr } = card;
  const errors: string[] = [];
  if (nicModelOf(card) === undefined) {
    errors.push(`${field}.nicModel: ${quoteSentValue(nicModel)}; expected one of pv, ${INTERFACE_MODELS.join(', ')}`);
  }
  for (const [key, value] of Object.entries({ network, macAddr })) {
    if (value !== undefined && readText(value) === undefined)
      errors.push(`${field}.${key}: ${quoteSentValue(value)}; expected a string`);
  }
  return errors;
}

function isShared({ shared }: HostDevice): boolean {
  return isEnabled(shared) || shared === 'shared';
}
