/** Immutable ConfigMaps and Secrets. */
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, forbiddenField } from '#kube/field-error.ts';

const FROZEN = 'field is immutable when `immutable` is set';

/** Once `immutable` is set, neither it nor the data may change. */
export function checkFrozen(
  object: { immutable?: boolean; [field: string]: unknown },
  old: { immutable?: boolean; [field: string]: unknown },
  fields: readonly string[],
): FieldError[] {
  if (old.immutable !== true) return [];
  const changed = fields.filter((field) => !sameValue(object[field], old[field]));
  return (object.immutable === true ? changed : ['immutable', ...changed]).map((field) =>
    forbiddenField(field, FROZEN),
  );
}
