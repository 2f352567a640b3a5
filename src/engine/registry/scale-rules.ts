/** Validates the fields that a scale subresource uses: int32 replica counts, and a string selector. */
import type { ScaleSubresource } from '#engine/registry/resource.ts';
import { isInteger } from '#engine/registry/structural/json-value.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { goText, goType } from '#kube/go/go-text.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

const INT32_MAX = 2147483647;

export function checkScale(object: KubeObject, scale: ScaleSubresource): FieldError[] {
  return [
    ...checkReplicas(object, scale.specReplicasPath),
    ...checkReplicas(object, scale.statusReplicasPath),
    ...(scale.labelSelectorPath ? checkSelector(object, scale.labelSelectorPath) : []),
  ];
}

function checkReplicas(object: KubeObject, path: string): FieldError[] {
  const { value, error } = valueAt(object, path);
  if (error !== undefined) return [invalidValue(path, 0, error)];
  if (value === undefined) return [];
  if (typeof value !== 'number' || !isInteger(value)) {
    return [invalidValue(path, 0, accessorError(path, value, 'int64'))];
  }
  if (value < 0) return [invalidValue(path, value, 'should be a non-negative integer')];
  if (value > INT32_MAX) return [invalidValue(path, value, `should be less than or equal to ${INT32_MAX}`)];
  return [];
}

function checkSelector(object: KubeObject, path: string): FieldError[] {
  const { value, error } = valueAt(object, path);
  if (error !== undefined) return [invalidValue(path, '', error)];
  if (value === undefined || typeof value === 'string') return [];
  return [invalidValue(path, '', accessorError(path, value, 'string'))];
}

/**
 * Splits a path. Paths of scale subresources are plain, such as `.spec.replicas`; they were checked with the
 * definition.
 */
export function splitFieldPath(path: string): string[] {
  return path.replace(/^\./, '').split('.');
}

export function valueAt(object: KubeObject, path: string): { value?: unknown; error?: string } {
  let value: unknown = object;
  for (const name of splitFieldPath(path)) {
    if (value === undefined || value === null) return {};
    if (!isRecord(value)) return { error: accessorError(path, value, 'map[string]interface{}') };
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return { value };
}

function accessorError(path: string, value: unknown, wanted: string): string {
  const shown = path.startsWith('.') ? path : `.${path}`;
  return `${shown} accessor error: ${goText(value)} is of the type ${goType(value)}, expected ${wanted}`;
}
