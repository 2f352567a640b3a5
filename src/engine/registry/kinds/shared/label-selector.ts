/** Schema and validation of label selectors. #kube/label-selector.ts evaluates them. */
import { checkLabelKey, checkLabelEntries, checkLabelValue } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import { list, map, obj, str } from '#kube/schema-dsl.ts';

export const selectorRequirement = obj(
  {
    key: str(),
    operator: str(),
    values: list(str(), { atomic: true }),
  },
  { required: ['key', 'operator'] },
);

export const labelSelector = obj(
  {
    matchExpressions: list(selectorRequirement, { atomic: true }),
    matchLabels: map(str()),
  },
  { atomic: true },
);

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

export function checkLabelSelector(field: string, selector: LabelSelector | undefined): FieldError[] {
  if (selector === undefined) return [];
  return [
    ...checkLabelEntries(`${field}.matchLabels`, selector.matchLabels),
    ...(selector.matchExpressions ?? []).flatMap((requirement, i) =>
      checkRequirement(`${field}.matchExpressions[${i}]`, requirement),
    ),
  ];
}

function checkRequirement(field: string, { key, operator, values = [] }: Requirement): FieldError[] {
  return [
    ...checkOperator(field, operator, values),
    ...checkLabelKey(`${field}.key`, key),
    ...values.flatMap((value, i) => checkLabelValue(`${field}.values[${i}]`, value)),
  ];
}

/** Checks the operator and its number of values. */
export function checkOperator(field: string, operator: string, values: readonly string[]): FieldError[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length > 0) return [];
      return [requiredValue(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")];
    case 'Exists':
    case 'DoesNotExist':
      if (values.length === 0) return [];
      return [forbiddenField(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
    default:
      return [invalidValue(`${field}.operator`, operator, 'not a valid selector operator')];
  }
}
