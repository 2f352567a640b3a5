/** Evaluates the podFailurePolicy of a Job for a failed pod. Pure. */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';

type Policy = NonNullable<JobSpec['podFailurePolicy']>;
type Rule = Policy['rules'][number];
type ContainerStatus = NonNullable<NonNullable<EnginePod['status']>['containerStatuses']>[number];

export interface FailurePolicyMatch {
  /** undefined if no rule matches. The failure then counts. */
  readonly action?: Rule['action'];
  /** Why the whole Job fails. Set with FailJob only. */
  readonly message?: string;
}

const NO_RULE: FailurePolicyMatch = {};

/** Returns the result of the first rule that matches. */
export function matchFailurePolicy(policy: Policy | undefined, pod: EnginePod): FailurePolicyMatch {
  for (const [index, rule] of (policy?.rules ?? []).entries()) {
    const found = matchRule(rule, pod);
    if (found === undefined) continue;
    const { action } = rule;
    return action === 'FailJob' ? { action, message: `${found} matching FailJob rule at index ${index}` } : { action };
  }
  return NO_RULE;
}

/** Reports whether the failure counts towards the backoffLimit. */
export function countsAsFailure(policy: Policy | undefined, pod: EnginePod): boolean {
  return matchFailurePolicy(policy, pod).action !== 'Ignore';
}

/** Returns why the rule matches the pod, as text for a message, or undefined. */
function matchRule({ onExitCodes, onPodConditions }: Rule, pod: EnginePod): string | undefined {
  const { namespace, name } = pod.metadata;
  if (onExitCodes !== undefined) {
    const container = findContainer(onExitCodes, pod);
    if (container === undefined) return undefined;
    const code = container.state?.terminated?.exitCode;
    return `Container ${container.name} for pod ${namespace}/${name} failed with exit code ${code}`;
  }
  const condition = pod.status?.conditions?.find(({ type, status }) =>
    onPodConditions?.some((pattern) => pattern.type === type && pattern.status === status),
  );
  return condition && `Pod ${namespace}/${name} has condition ${condition.type}`;
}

function findContainer(wanted: NonNullable<Rule['onExitCodes']>, { status }: EnginePod): ContainerStatus | undefined {
  const matches = ({ name, state }: ContainerStatus): boolean => {
    const code = state?.terminated?.exitCode ?? 0;
    if (code === 0 || (wanted.containerName !== undefined && wanted.containerName !== name)) return false;
    return wanted.values.includes(code) === (wanted.operator === 'In');
  };
  return status?.containerStatuses?.find(matches) ?? status?.initContainerStatuses?.find(matches);
}
