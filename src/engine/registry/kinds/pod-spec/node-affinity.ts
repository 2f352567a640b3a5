/** The node selectors of affinity and volumes: types and rules. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { int32, list, str, type Infer } from '#kube/schema-dsl.ts';
import { checkLabelKey, checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkOperator } from '#engine/registry/kinds/meta/label-selector.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';

const nodeSelectorRequirement = apiType(
  'core.v1.NodeSelectorRequirement',
  'A requirement on a label or field of a node.',
  {
    key: required(1, str(), 'Key of the label or field.'),
    operator: required(2, str(), 'Relation of the key to the values: In, NotIn, Exists, DoesNotExist, Gt or Lt.'),
    values: optional(3, list(str(), { atomic: true }), 'Values to compare with.'),
  },
);

const nodeSelectorTerm = apiType(
  'core.v1.NodeSelectorTerm',
  { description: 'Selects nodes that match all of its requirements.', atomic: true },
  {
    matchExpressions: optional(1, list(nodeSelectorRequirement, { atomic: true }), 'Requirements on labels.'),
    matchFields: optional(2, list(nodeSelectorRequirement, { atomic: true }), 'Requirements on fields.'),
  },
);

export const nodeSelector = apiType(
  'core.v1.NodeSelector',
  { description: 'Selects nodes that match any of its terms.', atomic: true },
  {
    nodeSelectorTerms: required(1, list(nodeSelectorTerm, { atomic: true }), 'Terms, of which any must match.'),
  },
);

const preferredSchedulingTerm = apiType('core.v1.PreferredSchedulingTerm', 'A weighted preference for nodes.', {
  weight: required(1, int32(), 'Weight of the preference, from 1 to 100.'),
  preference: required(2, nodeSelectorTerm, 'Node selector term of the preference.'),
});

export const nodeAffinity = apiType('core.v1.NodeAffinity', 'Scheduling constraints on the node of a pod.', {
  requiredDuringSchedulingIgnoredDuringExecution: pointer(1, nodeSelector, 'Requirements that the node must meet.'),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    2,
    list(preferredSchedulingTerm, { atomic: true }),
    'Weighted preferences. The scheduler prefers nodes with the highest sum of weights.',
  ),
});

export const volumeNodeAffinity = apiType(
  'core.v1.VolumeNodeAffinity',
  'Constraints on the nodes that can access a volume.',
  {
    required: pointer(1, nodeSelector, 'Requirements that a node must meet.'),
  },
);

const topologySelectorLabelRequirement = apiType(
  'core.v1.TopologySelectorLabelRequirement',
  'A requirement on a label of a node.',
  {
    key: required(1, str(), 'Key of the label.'),
    values: required(2, list(str(), { atomic: true }), 'Values, one of which the label must have.'),
  },
);

export const topologySelectorTerm = apiType(
  'core.v1.TopologySelectorTerm',
  { description: 'Selects topologies that match all of its requirements.', atomic: true },
  {
    matchLabelExpressions: optional(
      1,
      list(topologySelectorLabelRequirement, { atomic: true }),
      'Requirements on labels.',
    ),
  },
);

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
