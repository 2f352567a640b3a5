/** Builds ValidatingAdmissionPolicies with their bindings. */
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { POLICIES, POLICY_BINDINGS } from '#kube/cluster-kinds.ts';

interface Policy {
  readonly labels?: Readonly<Record<string, string>>;
  readonly resourceRules: readonly object[];
  readonly matchConditions?: readonly object[];
  readonly variables?: readonly object[];
  readonly validations: readonly object[];
}

/** Returns the policy, and a binding that applies it to all objects. */
export function buildPolicy(
  name: string,
  { labels, resourceRules, matchConditions = [], variables = [], validations }: Policy,
): DesiredObject[] {
  // Spells out the server's defaults, so that the operator finds no difference, and restores them if a user adds an
  // exemption.
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
  return [
    desiredObject(POLICIES, { name, labels }, { spec }),
    desiredObject(POLICY_BINDINGS, { name, labels }, { spec: binding }),
  ];
}

/** Returns the rule of a policy that matches updates of these resources. */
export function matchUpdates(apiGroup: string, ...resources: readonly string[]) {
  return { operations: ['UPDATE'], apiGroups: [apiGroup], apiVersions: ['v1'], resources, scope: '*' };
}

/** Returns the rule of a policy that matches creations and updates of these resources. */
export function matchWrites(apiGroup: string, ...resources: readonly string[]) {
  return { ...matchUpdates(apiGroup, ...resources), operations: ['CREATE', 'UPDATE'] };
}

/** Returns the rule of a policy that matches deletions of these resources. */
export function matchDeletes(apiGroup: string, ...resources: readonly string[]) {
  return { ...matchUpdates(apiGroup, ...resources), operations: ['DELETE'] };
}
