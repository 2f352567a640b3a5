/** Checks sound, watchdog, inputs, I/O threads of disks and acpi indexes beyond their schema. */
import { busOf } from '#api/devices/disk-bus.ts';
import { inputsOf, needsUsb } from '#api/devices/fixed-devices.ts';
import { REDIRECTION_SLOTS } from '#api/domain/hardware.ts';
import { checkNames } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

/** Ports of the USB controller. */
const USB_PORTS = 15;

export function checkHardware({ domain }: VmiSpec, path: string): FieldError[] {
  const { devices = {} } = domain;
  const field = `${path}.domain.devices`;
  const errors = checkNames(devices.inputs ?? [], `${field}.inputs`);
  if (devices.watchdog !== undefined && devices.watchdog.i6300esb === undefined) {
    errors.push(requiredValue(`${field}.watchdog.i6300esb`, 'it is the only supported watchdog'));
  }
  for (const [i, disk] of (devices.disks ?? []).entries()) {
    const at = `${field}.disks[${i}]`;
    if (disk.dedicatedIOThread === true && busOf(disk, undefined) !== 'virtio') {
      const text = `IOThreads are not supported for disks on a ${busOf(disk, undefined)} bus`;
      errors.push(invalidValue(`${at}.dedicatedIOThread`, true, text));
    }
    if (disk.lun?.reservation === true) {
      errors.push(forbiddenField(`${at}.lun.reservation`, 'persistent reservations are not passed through'));
    }
  }
  return [...errors, ...checkUsbPorts(devices, field), ...checkAcpiIndexes(devices, field)];
}

function checkUsbPorts(devices: NonNullable<VmiSpec['domain']['devices']>, field: string): FieldError[] {
  if (!needsUsb(devices)) return [];
  const disks = (devices.disks ?? []).filter(({ disk, plugged }) => disk?.bus === 'usb' && plugged !== false).length;
  const inputs = inputsOf(devices).filter(({ bus = 'usb' }) => bus === 'usb').length;
  const slots = devices.clientPassthrough === undefined ? 0 : REDIRECTION_SLOTS;
  const count = disks + inputs + slots;
  if (count <= USB_PORTS) return [];
  const text = `there are ${count} disks, inputs and redirection slots on the usb bus; at most ${USB_PORTS} are possible`;
  return [forbiddenField(field, text)];
}

function checkAcpiIndexes(devices: NonNullable<VmiSpec['domain']['devices']>, field: string): FieldError[] {
  const seen = new Set<number>();
  return (devices.interfaces ?? []).flatMap(({ acpiIndex }, i) => {
    if (acpiIndex === undefined) return [];
    if (seen.has(acpiIndex)) return [duplicateValue(`${field}.interfaces[${i}].acpiIndex`, acpiIndex)];
    seen.add(acpiIndex);
    return [];
  });
}
