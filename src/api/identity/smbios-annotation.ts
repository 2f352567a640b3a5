/**
 * The SMBIOS manufacturer strings of a guest, as an annotation of its instance. Copied from the identity record when
 * the instance is created, so that later changes of the KubeVirt object do not affect existing VMs. Pure.
 */
import type { Smbios } from '#api/domain/chassis.ts';

export const SMBIOS_ANNOTATION = 'selfsame.io/smbios';

const FIELDS = ['manufacturer', 'product', 'version', 'sku', 'family'] as const;
const LINE = /^[ -~]{1,256}$/;

/** Returns the valid SMBIOS strings, or undefined if there are none. */
export function pickValidSmbios(value: unknown): Smbios | undefined {
  const known = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  const valid = FIELDS.flatMap((field) => {
    const text = Object.hasOwn(known, field) ? known[field] : undefined;
    return typeof text === 'string' && LINE.test(text) ? [[field, text] as const] : [];
  });
  return valid.length === 0 ? undefined : Object.fromEntries(valid);
}

export function readSmbios(annotations: Readonly<Record<string, string>> = {}): Smbios | undefined {
  const text = Object.hasOwn(annotations, SMBIOS_ANNOTATION) ? annotations[SMBIOS_ANNOTATION] : undefined;
  if (text === undefined) return undefined;
  try {
    return pickValidSmbios(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function smbiosAnnotation(smbios: Smbios | undefined): Readonly<Record<string, string>> {
  const valid = pickValidSmbios(smbios);
  return valid === undefined ? {} : { [SMBIOS_ANNOTATION]: JSON.stringify(valid) };
}
