/** Checks fields that are copied to the launcher pod, whose creation would fail otherwise. */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, tooMany, type FieldError } from '#kube/field-error.ts';
import { annotationKeyErrors, labelKeyErrors, labelValueErrors, nameErrors } from '#kube/names.ts';

/** More than any pod has in practice, and few enough to compare them for each pod and node. */
const MAX_LABELS = 4096;

export function checkPlacement(spec: VmiSpec, path: string): FieldError[] {
  const errors = checkLabelMap(spec.nodeSelector, `${path}.nodeSelector`);
  for (const part of ['hostname', 'subdomain'] as const) {
    const text = spec[part];
    if (text === undefined || text === '') continue;
    errors.push(...nameErrors('label', text).map((error) => invalidValue(`${path}.${part}`, text, error)));
  }
  return errors;
}

export function checkLabelMap(labels: Readonly<Record<string, string>> | undefined, field: string): FieldError[] {
  const entries = Object.entries(labels ?? {});
  if (entries.length > MAX_LABELS) return [tooMany(field, entries.length, MAX_LABELS)];
  return entries.flatMap(([key, value]) => [
    ...labelKeyErrors(key).map((text) => invalidValue(field, key, text)),
    ...labelValueErrors(value).map((text) => invalidValue(field, value, text)),
  ]);
}

export function checkAnnotationMap(keys: Readonly<Record<string, string>> | undefined, field: string): FieldError[] {
  return Object.keys(keys ?? {}).flatMap((key) =>
    annotationKeyErrors(key).map((text) => invalidValue(field, key, text)),
  );
}
