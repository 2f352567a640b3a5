/** Rules for node selectors, as affinity and persistent volumes carry them. */
import { checkLabelKey } from '#engine/registry/kinds/shared/formats.ts';
import type { nodeSelectorTerm } from '#engine/registry/kinds/shared/node-affinity.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { Infer } from '#kube/schema-dsl.ts';

type Term = Infer<typeof nodeSelectorTerm>;
type Requirement = NonNullable<Term['matchExpressions']>[number];

export function checkNodeSelectorTerms(field: string, terms: readonly Term[]): FieldError[] {
  const at = `${field}.nodeSelectorTerms`;
  if (terms.length === 0) return [requiredValue(at, 'must have at least one node selector term')];
  return terms.flatMap(({ matchExpressions = [] }, i) =>
    matchExpressions.flatMap((one, j) => checkRequirement(`${at}[${i}].matchExpressions[${j}]`, one)),
  );
}

function checkRequirement(field: string, { key, operator, values = [] }: Requirement): FieldError[] {
  return [...checkOperator(field, operator, values), ...checkLabelKey(`${field}.key`, key)];
}

function checkOperator(field: string, operator: string, values: readonly string[]): FieldError[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length > 0) return [];
      return [requiredValue(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")];
    case 'Exists':
    case 'DoesNotExist':
      if (values.length === 0) return [];
      return [forbiddenField(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
    case 'Gt':
    case 'Lt':
      if (values.length === 1) return [];
      return [requiredValue(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
    default:
      return [invalidValue(`${field}.operator`, operator, 'not a valid selector operator')];
  }
}
