/** What a scale subresource asks of an object: replica counts that are int32, a selector that is a string. */
import type { ScaleSubresource } from '#engine/registry/resource.ts';
import { isInteger } from '#engine/registry/structural/json-value.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { goText, goType } from '#kube/go-text.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

const INT32_MAX = 2147483647;

export function scaleFaults(object: KubeObject, scale: ScaleSubresource): FieldError[] {
  return [
    ...replicasFaults(object, scale.specReplicasPath),
    ...replicasFaults(object, scale.statusReplicasPath),
    ...(scale.labelSelectorPath ? selectorFaults(object, scale.labelSelectorPath) : []),
  ];
}

function replicasFaults(object: KubeObject, path: string): FieldError[] {
  const { value, fault } = valueAt(object, path);
  if (fault !== undefined) return [invalidValue(path, 0, fault)];
  if (value === undefined) return [];
  if (typeof value !== 'number' || !isInteger(value)) {
    return [invalidValue(path, 0, accessorError(path, value, 'int64'))];
  }
  if (value < 0) return [invalidValue(path, value, 'should be a non-negative integer')];
  if (value > INT32_MAX) return [invalidValue(path, value, `should be less than or equal to ${INT32_MAX}`)];
  return [];
}

function selectorFaults(object: KubeObject, path: string): FieldError[] {
  const { value, fault } = valueAt(object, path);
  if (fault !== undefined) return [invalidValue(path, '', fault)];
  if (value === undefined || typeof value === 'string') return [];
  return [invalidValue(path, '', accessorError(path, value, 'string'))];
}

/** Paths of scale subresources are plain: `.spec.replicas`, checked when the definition was created. */
export function fieldsOf(path: string): string[] {
  return path.replace(/^\./, '').split('.');
}

export function valueAt(object: KubeObject, path: string): { value?: unknown; fault?: string } {
  let value: unknown = object;
  for (const name of fieldsOf(path)) {
    if (value === undefined || value === null) return {};
    if (!isRecord(value)) return { fault: accessorError(path, value, 'map[string]interface{}') };
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return { value };
}

function accessorError(path: string, value: unknown, wanted: string): string {
  const shown = path.startsWith('.') ? path : `.${path}`;
  return `${shown} accessor error: ${goText(value)} is of the type ${goType(value)}, expected ${wanted}`;
}
