/**
 * What a guest says of its maker travels with its instance: written by us when the instance is made, from the record of
 * the VM, so that it stays what it was whatever the KubeVirt object says later. Pure.
 */
import type { Smbios } from '#api/domain/chassis.ts';

export const SMBIOS_ANNOTATION = 'selfsame.io/smbios';

const FIELDS = ['manufacturer', 'product', 'version', 'sku', 'family'] as const;
const LINE = /^[ -~]{1,256}$/;

/** Only what can be said in SMBIOS; undefined where nothing is left. */
export function readableSmbios(value: unknown): Smbios | undefined {
  const known = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  const told = FIELDS.flatMap((field) => {
    const text = Object.hasOwn(known, field) ? known[field] : undefined;
    return typeof text === 'string' && LINE.test(text) ? [[field, text] as const] : [];
  });
  return told.length === 0 ? undefined : Object.fromEntries(told);
}

export function readSmbios(annotations: Readonly<Record<string, string>> = {}): Smbios | undefined {
  const text = Object.hasOwn(annotations, SMBIOS_ANNOTATION) ? annotations[SMBIOS_ANNOTATION] : undefined;
  if (text === undefined) return undefined;
  try {
    return readableSmbios(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function smbiosAnnotation(smbios: Smbios | undefined): Readonly<Record<string, string>> {
  const told = readableSmbios(smbios);
  return told === undefined ? {} : { [SMBIOS_ANNOTATION]: JSON.stringify(told) };
}
