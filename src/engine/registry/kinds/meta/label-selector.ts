/** Schema and validation of label selectors. #kube/selectors/label-selector.ts evaluates them. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { checkLabelKey, checkLabelEntries, checkLabelValue } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import { list, map, str } from '#kube/schema-dsl.ts';

const requirement = {
  key: required(1, str(), 'Key that the requirement applies to.'),
  operator: required(2, str(), 'Relation of the key to the values: In, NotIn, Exists or DoesNotExist.'),
  values: optional(3, list(str(), { atomic: true }), 'Values to compare with.'),
};

export const labelSelectorRequirement = apiType(
  'meta.v1.LabelSelectorRequirement',
  'A requirement on a label.',
  requirement,
);
export const fieldSelectorRequirement = apiType(
  'meta.v1.FieldSelectorRequirement',
  'A requirement on a field.',
  requirement,
);

export const labelSelector = apiType(
  'meta.v1.LabelSelector',
  { description: 'A label query over a set of objects. All requirements must match.', atomic: true },
  {
    matchLabels: optional(1, map(str()), 'Labels and the values that they must have.'),
    matchExpressions: optional(2, list(labelSelectorRequirement, { atomic: true }), 'Requirements on labels.'),
  },
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
