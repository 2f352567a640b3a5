import { deepEqual } from '#kube/deep.ts';
import type { FieldError } from '#kube/field-error.ts';

/**
 * Returns only the errors that an update introduces. Existing errors, caused by changed rules or settings, do not
 * prevent other changes: a VM whose machine type is no longer allowed can still be stopped.
 */
export function findNewErrors<T>(spec: T, old: T | undefined, errorsOf: (spec: T) => FieldError[]): FieldError[] {
  if (old !== undefined && deepEqual(spec, old)) return [];
  const errors = errorsOf(spec);
  if (old === undefined || errors.length === 0) return errors;
  const before = new Map<string, number>();
  for (const error of errorsOf(old)) before.set(errorKey(error), (before.get(errorKey(error)) ?? 0) + 1);
  return errors.filter((error) => {
    const remaining = before.get(errorKey(error)) ?? 0;
    before.set(errorKey(error), remaining - 1);
    return remaining <= 0;
  });
}

/** Ignores list indexes: removing an earlier item does not make an error new. */
const errorKey = ({ field, message }: FieldError) => `${field.replaceAll(/\[\d+\]/g, '[]')}: ${message}`;
