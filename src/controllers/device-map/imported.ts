/** What an import wrote on a VM for the beginning of its record. Pure. */
import { type ImportedDevices, parseImportedDevices } from '#api/imported-devices.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Undefined where nothing was imported. Admission has looked at it, but was perhaps not asked. */
export function importedOf({ metadata }: KubeObject): ImportedDevices | { readonly fault: string } | undefined {
  const text = metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION];
  return text === undefined ? undefined : parseImportedDevices(text);
}
