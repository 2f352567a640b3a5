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
  const before = new Map<string, number>();
  for (const error of errorsOf(old)) before.set(textOf(error), (before.get(textOf(error)) ?? 0) + 1);
  return errors.filter((error) => {
    const left = before.get(textOf(error)) ?? 0;
    before.set(textOf(error), left - 1);
    return left <= 0;
  });
}

/** Without the places in lists: who takes something else away before it does not make it wrong again. */
const textOf = ({ field, message }: FieldError) => `${field.replaceAll(/\[\d+\]/g, '[]')}: ${message}`;
