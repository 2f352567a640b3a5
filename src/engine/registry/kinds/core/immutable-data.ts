/** Validates updates of immutable ConfigMaps and Secrets. */
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, forbiddenField } from '#kube/field-error.ts';

const IMMUTABLE_TEXT = 'field is immutable when `immutable` is set';

/** Checks that neither the data nor `immutable` itself changes once `immutable` is set. */
export function checkImmutableData(
  object: { immutable?: boolean; [field: string]: unknown },
  old: { immutable?: boolean; [field: string]: unknown },
  fields: readonly string[],
): FieldError[] {
  if (old.immutable !== true) return [];
  const changed = fields.filter((field) => !sameValue(object[field], old[field]));
  return (object.immutable === true ? changed : ['immutable', ...changed]).map((field) =>
    forbiddenField(field, IMMUTABLE_TEXT),
  );
}
