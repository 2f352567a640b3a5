/** How a rule that the API server itself keeps is written: the policy, and the binding by which it holds everywhere. */
import { desired, type Desired } from '#operator/desired.ts';
import { POLICIES, POLICY_BINDINGS } from '#operator/kinds.ts';

interface Policy {
  readonly resourceRules: readonly object[];
  readonly matchConditions?: readonly object[];
  readonly variables?: readonly object[];
  readonly validations: readonly object[];
}

/** The policy, and that it holds for everything. */
export function policy(
  name: string,
  { resourceRules, matchConditions = [], variables = [], validations }: Policy,
): Desired[] {
  // As the server fills it in, or the operator would never find it as it should be.
  const everywhere = { namespaceSelector: {}, objectSelector: {}, matchPolicy: 'Equivalent' };
  const matchConstraints = { resourceRules, ...everywhere };
  return [
    desired(
      POLICIES,
      { name },
      { spec: { failurePolicy: 'Fail', matchConstraints, matchConditions, variables, validations } },
    ),
    desired(
      POLICY_BINDINGS,
      { name },
      { spec: { policyName: name, validationActions: ['Deny'], matchResources: everywhere } },
    ),
  ];
}

/** One rule of a policy: these resources, when they are changed. */
export function whenUpdated(apiGroup: string, ...resources: readonly string[]) {
  return { operations: ['UPDATE'], apiGroups: [apiGroup], apiVersions: ['v1'], resources, scope: '*' };
}
