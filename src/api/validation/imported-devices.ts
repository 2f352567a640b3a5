/** Checks the annotation with imported devices: it may be set at creation only, and its value must be valid. */
import { parseImportedDevices } from '#api/devices/imported-devices.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

const FIELD = `metadata.annotations[${IMPORTED_DEVICES_ANNOTATION}]`;

/** Users may remove the annotation: by then the identity record has its content. */
export function checkImportedDevices({ metadata }: VirtualMachine, old: VirtualMachine | undefined): FieldError[] {
  const text = metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION];
  if (text === undefined || text === old?.metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION]) return [];
  if (old !== undefined) return [forbiddenField(FIELD, 'may only be set when the VirtualMachine is created')];
  const parsed = parseImportedDevices(text);
  return 'fault' in parsed
    ? [{ reason: 'FieldValueInvalid', field: FIELD, message: `Invalid value: ${parsed.fault}` }]
    : [];
}
