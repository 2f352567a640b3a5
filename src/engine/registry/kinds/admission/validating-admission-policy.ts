/** ValidatingAdmissionPolicy: CEL rules for writes. */
import { checkExpressions } from '#engine/expressions/compile-policy.ts';
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import {
  checkMatchConditions,
  checkMatchResources,
  matchCondition,
  matchResources,
} from '#engine/registry/kinds/admission/match.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, UNSET_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { metaConditionSchema } from '#engine/registry/kinds/meta/condition.ts';
import { checkQualifiedName, checkName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { parseApiVersion } from '#kube/meta.ts';
import { type Infer, int64, list, overrideOptions, oneOf, str } from '#kube/schema-dsl.ts';

const paramKind = apiType(
  'admissionregistration.v1.ParamKind',
  { description: 'The API version and kind of parameter resources.', atomic: true },
  {
    apiVersion: optional(1, str(), 'API version of the kind.'),
    kind: optional(2, str(), 'Name of the kind.'),
  },
);

const validation = apiType(
  'admissionregistration.v1.Validation',
  'A CEL expression that decides whether a request is allowed.',
  {
    expression: required(1, str(), 'CEL expression that must evaluate to true.'),
    message: optional(2, str(), 'Message returned when the validation fails.'),
    reason: pointer(
      3,
      oneOf(['Forbidden', 'Invalid', 'RequestEntityTooLarge']),
      'Machine-readable reason of the failure: Unauthorized, Forbidden, Invalid or RequestEntityTooLarge.',
    ),
    messageExpression: optional(
      4,
      str(),
      'CEL expression that evaluates to the message. Takes precedence over message.',
    ),
  },
);

const variable = apiType(
  'admissionregistration.v1.Variable',
  { description: 'A named expression that other expressions can use.', atomic: true },
  {
    name: required(1, str(), 'Name of the variable. Expressions refer to it as variables.<name>.'),
    expression: required(2, str(), 'CEL expression that evaluates to the value of the variable.'),
  },
);

const auditAnnotation = apiType(
  'admissionregistration.v1.AuditAnnotation',
  'An annotation added to the audit event of the request.',
  {
    key: required(1, str(), 'Key of the annotation.'),
    valueExpression: required(
      2,
      str(),
      'CEL expression that evaluates to the value as a string, or to null to omit the annotation.',
    ),
  },
);

const validatingAdmissionPolicySpec = apiType(
  'admissionregistration.v1.ValidatingAdmissionPolicySpec',
  'Desired behavior of a ValidatingAdmissionPolicy.',
  {
    paramKind: pointer(1, paramKind, 'Kind of the resources that parameterize the policy.'),
    matchConstraints: pointer(2, matchResources, 'Operations and resources that the policy validates.'),
    validations: optional(3, list(validation, { atomic: true }), 'CEL expressions that the request must satisfy.'),
    failurePolicy: pointer(
      4,
      oneOf(['Fail', 'Ignore'], { default: 'Fail' }),
      'How errors of the policy are handled: Ignore or Fail.',
    ),
    auditAnnotations: optional(
      5,
      list(auditAnnotation, { atomic: true }),
      'Annotations added to the audit event of the request.',
    ),
    matchConditions: optional(
      6,
      list(matchCondition, { mergeKey: 'name' }),
      'CEL expressions that must all be true for the policy to be evaluated.',
    ),
    variables: optional(
      7,
      list(variable, { mergeKey: 'name' }),
      'Named expressions that other expressions of the policy can use.',
    ),
  },
);

const expressionWarning = apiType('admissionregistration.v1.ExpressionWarning', 'A warning about one expression.', {
  fieldRef: required(2, str(), 'Path of the field that holds the expression.'),
  warning: required(3, str(), 'Text of the warning, with the type errors that were found.'),
});

const typeChecking = apiType(
  'admissionregistration.v1.TypeChecking',
  'Results of type checking the expressions of a policy.',
  {
    expressionWarnings: optional(1, list(expressionWarning, { atomic: true }), 'Warnings about expressions.'),
  },
);

const validatingAdmissionPolicyStatus = apiType(
  'admissionregistration.v1.ValidatingAdmissionPolicyStatus',
  'Status of a ValidatingAdmissionPolicy.',
  {
    observedGeneration: optional(1, int64(), 'Generation of the policy that the status describes.'),
    typeChecking: pointer(2, typeChecking, 'Results of type checking the expressions.'),
    conditions: optional(
      3,
      list(metaConditionSchema, { mapKeys: ['type'] }),
      'Latest observations of the state of the policy.',
    ),
  },
);

const policy = apiType(
  'admissionregistration.v1.ValidatingAdmissionPolicy',
  'An admission policy that accepts or rejects objects without changing them. Takes effect through bindings.',
  {
    spec: optional(
      2,
      overrideOptions(validatingAdmissionPolicySpec, { default: {} }),
      'Desired behavior of the policy.',
    ),
    status: optional(
      3,
      overrideOptions(validatingAdmissionPolicyStatus, { default: {} }),
      'Status of the policy, including warnings about its expressions. Populated by the system. Read-only.',
    ),
  },
);

type PolicySpec = Infer<typeof validatingAdmissionPolicySpec>;

export const validatingAdmissionPolicies = defineKind({
  group: 'admissionregistration.k8s.io',
  kind: 'ValidatingAdmissionPolicy',
  plural: 'validatingadmissionpolicies',
  namespaced: false,
  needsRevision: true,
  categories: ['api-extensions'],
  schema: policy,
  columns: [
    { name: 'Validations', type: 'integer', value: ({ spec }) => spec?.validations?.length ?? 0 },
    {
      name: 'ParamKind',
      value: ({ spec }) =>
        spec?.paramKind === undefined ? UNSET_TEXT : `${spec.paramKind.apiVersion ?? ''}/${spec.paramKind.kind ?? ''}`,
    },
    age,
  ],
  status: true,
  generation: true,
  validate: ({ metadata, spec }) => checkPolicy(metadata.name ?? '', spec ?? {}),
});

function checkPolicy(name: string, spec: PolicySpec): FieldError[] {
  const { matchConstraints, validations = [], auditAnnotations = [], variables = [] } = spec;
  const errors = checkParamKind(spec.paramKind);
  if (matchConstraints === undefined) {
    errors.push(requiredValue('spec.matchConstraints'));
  } else {
    errors.push(...checkMatchResources('spec.matchConstraints', matchConstraints));
    if ((matchConstraints.resourceRules?.length ?? 0) === 0) {
      errors.push(requiredValue('spec.matchConstraints.resourceRules'));
    }
  }
  errors.push(...checkMatchConditions('spec.matchConditions', spec.matchConditions));
  errors.push(...variables.flatMap((one, i) => checkVariable(`spec.variables[${i}]`, one)));
  if (validations.length + auditAnnotations.length === 0) {
    const text = 'validations or auditAnnotations must contain at least one item';
    errors.push(requiredValue('spec.validations', text), requiredValue('spec.auditAnnotations', text));
  }
  errors.push(...validations.flatMap((one, i) => checkValidation(`spec.validations[${i}]`, one)));
  for (const [i, { key, valueExpression }] of auditAnnotations.entries()) {
    errors.push(...checkQualifiedName(`spec.auditAnnotations[${i}].key`, `${name}/${key}`));
    if (valueExpression.trim() !== '') continue;
    errors.push(requiredValue(`spec.auditAnnotations[${i}].valueExpression`, 'valueExpression is not specified'));
  }
  const keys = auditAnnotations.map(({ key }, i) => [`spec.auditAnnotations[${i}].key`, key] as const);
  return [...errors, ...checkUnique(keys), ...checkExpressions(spec)];
}

function checkParamKind(kind: PolicySpec['paramKind']): FieldError[] {
  if (kind === undefined) return [];
  const errors: FieldError[] = [];
  const { apiVersion = '' } = kind;
  if (apiVersion === '') {
    errors.push(requiredValue('spec.paramKind.apiVersion'));
  } else {
    const { group, version } = parseApiVersion(apiVersion);
    if (group !== '') errors.push(...checkName('spec.paramKind.apiVersion', group, 'subdomain'));
    errors.push(...checkName('spec.paramKind.apiVersion', version, 'label1035'));
  }
  if (!kind.kind) errors.push(requiredValue('spec.paramKind.kind'));
  return errors;
}

const IDENTIFIER = /^[_a-zA-Z][_a-zA-Z0-9]*$/;

function checkVariable(
  field: string,
  { name, expression }: NonNullable<PolicySpec['variables']>[number],
): FieldError[] {
  const errors: FieldError[] = [];
  if (name.trim() === '') errors.push(requiredValue(`${field}.name`, 'name is not specified'));
  else if (!IDENTIFIER.test(name)) errors.push(invalidValue(`${field}.name`, name, 'must be a valid CEL identifier'));
  if (expression.trim() === '') errors.push(requiredValue(`${field}.expression`, 'expression is not specified'));
  return errors;
}

function checkValidation(field: string, one: NonNullable<PolicySpec['validations']>[number]): FieldError[] {
  const { expression, message = '', messageExpression = '' } = one;
  const errors: FieldError[] = [];
  if (expression.trim() === '') errors.push(requiredValue(`${field}.expression`, 'expression is not specified'));
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(invalidValue(`${field}.messageExpression`, messageExpression, 'must be non-empty if specified'));
  }
  if (message !== '' && message.trim() === '') {
    errors.push(invalidValue(`${field}.message`, message, 'must be non-empty if specified'));
  } else if (/[\r\n]/.test(message.trim())) {
    errors.push(invalidValue(`${field}.message`, message, 'must not contain line breaks'));
  }
  return errors;
}
