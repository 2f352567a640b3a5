/** Validates node selectors of affinity and persistent volumes. */
import { checkLabelKey, checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkOperator } from '#engine/registry/kinds/meta/label-selector.ts';
import type { nodeSelectorTerm } from '#engine/registry/kinds/pod-spec/node-affinity.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { Infer } from '#kube/schema-dsl.ts';

type Term = Infer<typeof nodeSelectorTerm>;
type Requirement = NonNullable<Term['matchExpressions']>[number];

export function checkNodeSelectorTerms(field: string, terms: readonly Term[]): FieldError[] {
  const at = `${field}.nodeSelectorTerms`;
  if (terms.length === 0) return [requiredValue(at, 'must have at least one node selector term')];
  return terms.flatMap((term, i) => checkNodeSelectorTerm(`${at}[${i}]`, term));
}

export function checkNodeSelectorTerm(field: string, term: Term): FieldError[] {
  const { matchExpressions = [], matchFields = [] } = term;
  return [
    ...matchExpressions.flatMap((one, i) => checkRequirement(`${field}.matchExpressions[${i}]`, one)),
    ...matchFields.flatMap((one, i) => checkFieldRequirement(`${field}.matchFields[${i}]`, one)),
  ];
}

function checkRequirement(field: string, { key, operator, values = [] }: Requirement): FieldError[] {
  return [...checkNodeOperator(field, operator, values), ...checkLabelKey(`${field}.key`, key)];
}

/** Node labels may contain numbers, which can be compared. */
function checkNodeOperator(field: string, operator: string, values: readonly string[]): FieldError[] {
  if (operator !== 'Gt' && operator !== 'Lt') return checkOperator(field, operator, values);
  if (values.length === 1) return [];
  return [requiredValue(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
}

/** The only supported field is the node's name, with a single value. */
function checkFieldRequirement(field: string, { key, operator, values = [] }: Requirement): FieldError[] {
  const errors: FieldError[] = [];
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.push(invalidValue(`${field}.operator`, operator, 'not a valid selector operator'));
  } else if (values.length !== 1) {
    const text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(requiredValue(`${field}.values`, text));
  }
  if (key !== 'metadata.name') {
    return [...errors, invalidValue(`${field}.key`, key, 'not a valid field selector key')];
  }
  return [...errors, ...values.flatMap((name, i) => checkName(`${field}.values[${i}]`, name, 'subdomain'))];
}
