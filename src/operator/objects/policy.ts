/** How a rule that the API server itself keeps is written: the policy, and the binding by which it holds everywhere. */
import { desired, type Desired } from '#operator/desired.ts';
import { POLICIES, POLICY_BINDINGS } from '#operator/kinds.ts';

interface Policy {
  readonly labels?: Readonly<Record<string, string>>;
  readonly resourceRules: readonly object[];
  readonly matchConditions?: readonly object[];
  readonly variables?: readonly object[];
  readonly validations: readonly object[];
}

/** The policy, and that it holds for everything. */
export function policy(
  name: string,
  { labels, resourceRules, matchConditions = [], variables = [], validations }: Policy,
): Desired[] {
  // As the server fills it in, or the operator would never find it as it should be; and nothing by which it could be
  // made to look away.
  const everywhere = {
    namespaceSelector: {},
    objectSelector: {},
    excludeResourceRules: [],
    matchPolicy: 'Equivalent',
  };
  const spec = {
    failurePolicy: 'Fail',
    paramKind: null,
    matchConstraints: { resourceRules, ...everywhere },
    matchConditions,
    variables,
    validations,
  };
  const binding = {
    policyName: name,
    paramRef: null,
    validationActions: ['Deny'],
    matchResources: { resourceRules: [], ...everywhere },
  };
  return [desired(POLICIES, { name, labels }, { spec }), desired(POLICY_BINDINGS, { name, labels }, { spec: binding })];
}

/** Returns the rule of a policy that matches updates of these resources. */
export function whenUpdated(apiGroup: string, ...resources: readonly string[]) {
  return { operations: ['UPDATE'], apiGroups: [apiGroup], apiVersions: ['v1'], resources, scope: '*' };
}

/** Returns the rule of a policy that matches creations and updates of these resources. */
export function whenWritten(apiGroup: string, ...resources: readonly string[]) {
  return { ...whenUpdated(apiGroup, ...resources), operations: ['CREATE', 'UPDATE'] };
}

/** Returns the rule of a policy that matches deletions of these resources. */
export function whenDeleted(apiGroup: string, ...resources: readonly string[]) {
  return { ...whenUpdated(apiGroup, ...resources), operations: ['DELETE'] };
}
