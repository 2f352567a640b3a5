/** Checks enums. */
import { canonicalJson } from '#engine/registry/structural/json-value.ts';
import type { Check } from '#engine/registry/structural/report.ts';
import { unsupportedValue } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export function enumCheck(schema: Schema): Check | undefined {
  if (schema.enum === undefined || schema.enum.length === 0) return undefined;
  const scalars = new Set<unknown>();
  const composites = new Set<string>();
  for (const value of schema.enum) {
    if (typeof value === 'object' && value !== null) composites.add(canonicalJson(value));
    else scalars.add(value);
  }
  const supported = schema.enum.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return (value, report) => {
    if (scalars.has(value)) return;
    if (composites.size > 0 && composites.has(canonicalJson(value))) return;
    // kube-apiserver prints null as a quoted string.
    report.add(unsupportedValue(report.path(), value ?? 'null', supported));
  };
}
