import { deepEqual } from '#kube/deep.ts';
import type { FieldError } from '#kube/field-error.ts';

/**
 * What an update makes wrong. What was wrong before, for rules or settings have changed since, does not keep anybody
 * from changing something else: a VM whose machine type is not allowed any more can still be stopped.
 */
export function newlyWrong<T>(spec: T, old: T | undefined, errorsOf: (spec: T) => FieldError[]): FieldError[] {
  if (old !== undefined && deepEqual(spec, old)) return [];
  const errors = errorsOf(spec);
  if (old === undefined || errors.length === 0) return errors;
  const before = new Set(errorsOf(old).map(textOf));
  return errors.filter((error) => !before.has(textOf(error)));
}

const textOf = ({ field, message }: FieldError) => `${field}: ${message}`;
