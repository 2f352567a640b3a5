/** The rules of the scopes of ResourceQuotas: known names, resources that they apply to, operators. Pure. */
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';

export interface ScopeRequirement {
  readonly scopeName: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface ScopedSpec {
  readonly hard?: Readonly<Record<string, unknown>>;
  readonly scopes?: readonly string[];
  readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeRequirement[] };
}

const COMPUTE = ['pods', 'cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory'];
/** The resources of a quota to which each scope can be applied, apart from those with a slash in their name. */
const RESOURCES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['Terminating', new Set(COMPUTE)],
  ['NotTerminating', new Set(COMPUTE)],
  ['BestEffort', new Set(['pods'])],
  ['NotBestEffort', new Set(COMPUTE)],
  ['PriorityClass', new Set(COMPUTE)],
  ['CrossNamespacePodAffinity', new Set(COMPUTE)],
  ['VolumeAttributesClass', new Set(['persistentvolumeclaims', 'requests.storage'])],
]);
const WITH_VALUES = new Set(['PriorityClass', 'VolumeAttributesClass']);
const CONFLICTS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const;

const ONLY_EXISTS =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

export function quotaScopeErrors({ hard = {}, scopes = [], scopeSelector }: ScopedSpec): FieldError[] {
  const names = Object.keys(hard).sort();
  const errors: FieldError[] = [];
  for (const scope of scopes) {
    if (!RESOURCES.has(scope)) errors.push(invalidValue('spec.scopes', scopes, 'unsupported scope'));
    errors.push(...misapplied(scope, names).map((why) => invalidValue('spec.scopes', scopes, why)));
  }
  errors.push(...conflicts(scopes).map((why) => invalidValue('spec.scopes', scopes, why)));
  const requirements = scopeSelector?.matchExpressions ?? [];
  const field = 'spec.scopeSelector.matchExpressions';
  for (const requirement of requirements) {
    const { scopeName } = requirement;
    if (!RESOURCES.has(scopeName)) errors.push(invalidValue(`${field}.scopeName`, scopeName, 'unsupported scope'));
    errors.push(...misapplied(scopeName, names).map((why) => invalidValue(field, scopeSelector, why)));
    errors.push(...operatorErrors(field, requirement));
  }
  errors.push(
    ...conflicts(requirements.map(({ scopeName }) => scopeName)).map((why) => invalidValue(field, scopes, why)),
  );
  return errors;
}

/** Returns one message for each resource to which the scope cannot be applied. */
function misapplied(scope: string, names: readonly string[]): string[] {
  const allowed = RESOURCES.get(scope);
  if (allowed === undefined) return [];
  const wrong = names.filter((name) => !name.includes('/') && !allowed.has(name));
  return wrong.map(() => 'unsupported scope applied to resource');
}

function conflicts(scopes: readonly string[]): string[] {
  return CONFLICTS.filter((pair) => pair.every((scope) => scopes.includes(scope))).map(() => 'conflicting scopes');
}

function operatorErrors(field: string, { scopeName, operator, values = [] }: ScopeRequirement): FieldError[] {
  const errors: FieldError[] = [];
  if (RESOURCES.has(scopeName) && !WITH_VALUES.has(scopeName) && operator !== 'Exists') {
    errors.push(invalidValue(`${field}.operator`, operator, ONLY_EXISTS));
  }
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length > 0) return errors;
    const why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    return [...errors, requiredValue(`${field}.values`, why)];
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length === 0) return errors;
    const why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    return [...errors, invalidValue(`${field}.values`, values, why)];
  }
  return [...errors, invalidValue(`${field}.operator`, operator, 'not a valid selector operator')];
}
