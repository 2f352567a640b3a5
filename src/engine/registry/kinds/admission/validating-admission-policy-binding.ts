/** ValidatingAdmissionPolicyBinding: binds a policy to resources, parameters and actions. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { checkMatchResources, matchResources } from '#engine/registry/kinds/admission/match.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, selectorText, UNSET_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { checkName, checkRequiredName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import { type Infer, list, overrideOptions, oneOf, str } from '#kube/schema-dsl.ts';

const paramRef = apiType(
  'admissionregistration.v1.ParamRef',
  { description: 'A reference to the parameter resources of a policy.', atomic: true },
  {
    name: optional(1, str(), 'Name of one parameter resource.'),
    namespace: optional(
      2,
      str(),
      "Namespace of the parameter resources. Defaults to the request's namespace for namespaced kinds.",
    ),
    selector: pointer(3, labelSelector, 'Selects several parameter resources by their labels.'),
    parameterNotFoundAction: pointer(
      4,
      oneOf(['Allow', 'Deny']),
      'Whether requests pass if no parameter resource exists: Allow or Deny.',
    ),
  },
);

const validatingAdmissionPolicyBindingSpec = apiType(
  'admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec',
  'Desired behavior of a ValidatingAdmissionPolicyBinding.',
  {
    policyName: required(1, str(), 'Name of the ValidatingAdmissionPolicy.', { omitEmpty: true }),
    paramRef: pointer(2, paramRef, 'Parameter resources of the policy.'),
    matchResources: pointer(3, matchResources, 'Further limits the resources that the policy validates.'),
    validationActions: required(
      4,
      list(oneOf(['Audit', 'Deny', 'Warn']), { set: true }),
      'How failed validations are enforced: Deny, Warn, Audit.',
      { omitEmpty: true },
    ),
  },
);

const policyBinding = apiType(
  'admissionregistration.v1.ValidatingAdmissionPolicyBinding',
  'Binds a ValidatingAdmissionPolicy to resources and parameters.',
  {
    spec: required(
      2,
      overrideOptions(validatingAdmissionPolicyBindingSpec, { default: {} }),
      'Desired behavior of the binding.',
    ),
  },
);

type ParamRef = Infer<typeof paramRef>;

export const validatingAdmissionPolicyBindings = defineKind({
  group: 'admissionregistration.k8s.io',
  kind: 'ValidatingAdmissionPolicyBinding',
  plural: 'validatingadmissionpolicybindings',
  namespaced: false,
  needsRevision: true,
  categories: ['api-extensions'],
  schema: policyBinding,
  columns: [
    { name: 'PolicyName', value: ({ spec }) => spec.policyName },
    { name: 'ParamRef', value: ({ spec }) => paramText(spec.paramRef) },
    age,
  ],
  generation: true,
  validate: ({ spec }) => [
    ...checkRequiredName('spec.policyName', spec.policyName, 'subdomain'),
    ...checkParamRef(spec.paramRef),
    ...checkMatchResources('spec.matchResources', spec.matchResources),
    ...checkActions(spec.validationActions),
  ],
});

/** Shows `*` for the namespace, because it is unknown here whether the parameters are namespaced. */
function paramText(ref: ParamRef | undefined): string {
  if (ref?.name) return `${ref.namespace || '*'}/${ref.name}`;
  return ref?.selector === undefined ? UNSET_TEXT : selectorText(ref.selector);
}

function checkParamRef(ref: ParamRef | undefined): FieldError[] {
  if (ref === undefined) return [];
  const { name, selector, parameterNotFoundAction } = ref;
  const errors: FieldError[] = checkLabelSelector('spec.paramRef.selector', selector);
  if (name) errors.push(...checkName('spec.paramRef.name', name, 'path-segment'));
  if (name && selector !== undefined) {
    for (const field of ['name', 'selector']) {
      errors.push(forbiddenField(`spec.paramRef.${field}`, 'name and selector are mutually exclusive'));
    }
  }
  if (!name && selector === undefined) {
    errors.push(requiredValue('spec.paramRef', 'one of name or selector must be specified'));
  }
  if (parameterNotFoundAction === undefined) errors.push(requiredValue('spec.paramRef.parameterNotFoundAction'));
  return errors;
}

function checkActions(actions: readonly string[]): FieldError[] {
  const field = 'spec.validationActions';
  if (actions.length === 0) return [requiredValue(field, 'at least one validation action is required')];
  const errors = checkUnique(actions.map((action, i) => [`${field}[${i}]`, action] as const));
  if (actions.includes('Deny') && actions.includes('Warn')) {
    const text =
      'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)';
    errors.push(invalidValue(field, actions, text));
  }
  return errors;
}
