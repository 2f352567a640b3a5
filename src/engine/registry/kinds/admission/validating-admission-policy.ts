/** ValidatingAdmissionPolicy: CEL rules for writes. */
import { checkExpressions } from '#engine/expressions/compile-policy.ts';
import {
  checkMatchConditions,
  checkMatchResources,
  matchCondition,
  matchResources,
} from '#engine/registry/kinds/admission/match.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, UNSET_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { coreConditionSchema } from '#engine/registry/kinds/shared/condition.ts';
import { checkQualifiedName, checkName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { parseApiVersion } from '#kube/meta.ts';
import { type Infer, int64, list, overrideOptions, obj, oneOf, str } from '#kube/schema-dsl.ts';

const paramKind = obj(
  {
    apiVersion: str(),
    kind: str(),
  },
  { atomic: true },
);

const validation = obj(
  {
    expression: str(),
    message: str(),
    messageExpression: str(),
    reason: oneOf(['Forbidden', 'Invalid', 'RequestEntityTooLarge']),
  },
  { required: ['expression'] },
);

const variable = obj(
  {
    expression: str(),
    name: str(),
  },
  { required: ['name', 'expression'], atomic: true },
);

const auditAnnotation = obj(
  {
    key: str(),
    valueExpression: str(),
  },
  { required: ['key', 'valueExpression'] },
);

const validatingAdmissionPolicySpec = obj({
  auditAnnotations: list(auditAnnotation, { atomic: true }),
  failurePolicy: oneOf(['Fail', 'Ignore'], { default: 'Fail' }),
  matchConditions: list(matchCondition, { mergeKey: 'name' }),
  matchConstraints: matchResources,
  paramKind,
  validations: list(validation, { atomic: true }),
  variables: list(variable, { mergeKey: 'name' }),
});

const expressionWarning = obj(
  {
    fieldRef: str(),
    warning: str(),
  },
  { required: ['fieldRef', 'warning'] },
);

const typeChecking = obj({
  expressionWarnings: list(expressionWarning, { atomic: true }),
});

const validatingAdmissionPolicyStatus = obj({
  conditions: list(coreConditionSchema, { mapKeys: ['type'] }),
  observedGeneration: int64(),
  typeChecking,
});

const policy = obj({
  spec: overrideOptions(validatingAdmissionPolicySpec, { default: {} }),
  status: overrideOptions(validatingAdmissionPolicyStatus, { default: {} }),
});

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
