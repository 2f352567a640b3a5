/** Checks the firmware UUID and serial, the boot loader, and direct kernel boot. */
import type { Firmware, KernelBoot } from '#api/domain/firmware.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, requiredValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const NIL_UUID = /^[0-]*$/;
const EXAMPLE = '5d307ca9-b3ef-428c-8861-06e72d69f223';
/** Characters that are not allowed in SMBIOS strings and command lines. */
// oxlint-disable-next-line no-control-regex
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f]/;

export function checkFirmware({ domain }: VmiSpec, path: string): FieldError[] {
  const { firmware, features } = domain;
  if (firmware === undefined) return [];
  const field = `${path}.domain.firmware`;
  return [
    ...checkIdentity(firmware, field),
    ...checkBootloader(firmware, field, features?.smm !== undefined && features.smm.enabled !== false),
    ...checkKernelBoot(firmware.kernelBoot, `${field}.kernelBoot`),
  ];
}

function checkIdentity({ uuid = '', serial = '' }: Firmware, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (uuid !== '' && !isUuid(uuid)) errors.push(invalidValue(`${path}.uuid`, uuid, explainInvalidUuid(uuid)));
  if (CONTROL_CHARACTERS.test(serial)) {
    errors.push(invalidValue(`${path}.serial`, serial, 'must not contain control characters'));
  }
  return errors;
}

/** Reports whether the value is a UUID other than the nil UUID. */
export function isUuid(value: unknown): boolean {
  return typeof value === 'string' && UUID.test(value) && !NIL_UUID.test(value);
}

function explainInvalidUuid(uuid: string): string {
  return `must be a UUID as of RFC 4122, other than the nil UUID (e.g. ${EXAMPLE}), but ${describeUuidError(uuid)}`;
}

function describeUuidError(uuid: string): string {
  if (UUID.test(uuid)) return 'is the nil UUID';
  const invalid = /[^0-9a-f-]/iu.exec(uuid)?.[0];
  if (invalid !== undefined) return `contains ${JSON.stringify(invalid)}, which is not a hexadecimal digit`;
  const digits = uuid.replaceAll('-', '').length;
  return digits === 32 ? 'has its dashes in the wrong places' : `has ${digits} hexadecimal digits instead of 32`;
}

function checkBootloader({ bootloader }: Firmware, path: string, smm: boolean): FieldError[] {
  if (bootloader === undefined) return [];
  const { bios, efi } = bootloader;
  const field = `${path}.bootloader`;
  const errors: FieldError[] = [];
  if (bios !== undefined && efi !== undefined) {
    errors.push(forbiddenField(`${field}.efi`, 'only one of bios and efi may be set'));
  }
  if (efi !== undefined && efi.secureBoot !== false && !smm) {
    const text = `${field}.efi has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled. Set features.smm.enabled to true, or efi.secureBoot, which is true by default, to false.`;
    errors.push(invalidValue(`${field}.efi.secureBoot`, efi.secureBoot ?? true, text));
  }
  return errors;
}

function checkKernelBoot(kernelBoot: KernelBoot | undefined, path: string): FieldError[] {
  if (kernelBoot === undefined) return [];
  const { container, kernelArgs = '' } = kernelBoot;
  const errors: FieldError[] = [];
  if (CONTROL_CHARACTERS.test(kernelArgs)) {
    errors.push(invalidValue(`${path}.kernelArgs`, kernelArgs, 'must not contain control characters'));
  }
  if (container === undefined) {
    const text = 'kernel arguments cannot be provided without an external kernel';
    if (kernelArgs !== '') return [...errors, invalidValue(`${path}.kernelArgs`, kernelArgs, text)];
    return [...errors, requiredValue(`${path}.container`, 'the image with the kernel')];
  }
  if (container.image !== GUEST_IMAGE) {
    errors.push(unsupportedValue(`${path}.container.image`, container.image, [GUEST_IMAGE]));
  }
  for (const part of ['kernelPath', 'initrdPath'] as const) {
    if (container[part] === undefined) continue;
    errors.push(forbiddenField(`${path}.container.${part}`, `${GUEST_IMAGE} brings its own kernel and initrd`));
  }
  return errors;
}
