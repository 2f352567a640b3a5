/** Computes the status of the KubeVirt object, which reports the state of the installation. Pure. */
import { errorMessage } from '#lib/error-message.ts';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { findCondition, setCondition, type Condition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import { VERSION } from '#lib/version.ts';
import { idOf, type DesiredObject, type PresentObjects } from '#operator/desired.ts';
import type { ConditionedObject } from '#kube/core-kinds.ts';
import type { PolicySupport } from '#operator/policy-support.ts';
import { hasTypeErrors, joinProblems, protectionHealth } from '#operator/protection-health.ts';
import type { FailedChange } from '#runtime/plan.ts';

interface InstallationState {
  readonly kubevirt: Stored<KubeVirt>;
  readonly present: PresentObjects;
  readonly policies: PolicySupport;
  readonly failures: readonly FailedChange[];
  readonly now: string;
}

export function installationStatus({
  kubevirt,
  present,
  policies,
  failures,
  now,
}: InstallationState): KubeVirt['status'] {
  const failed = failures.map(({ change, error }) => `cannot ${change.do}: ${change.why}: ${errorMessage(error)}`);
  const unhealthy = present.flatMap(([wanted, object]) => findUnhealthy(wanted, object));
  const problems = [...failed, ...unhealthy];
  const message = joinProblems(problems);
  const inPlace = failed.length === 0;
  const protection = protectionHealth(policies, present);
  const wasDeployed = kubevirt.status?.phase === 'Deployed';
  const conditions = [
    inPlace
      ? buildCondition('Available', true, 'AllComponentsReady', 'All components are ready.')
      : buildCondition('Available', wasDeployed, wasDeployed ? 'AllComponentsReady' : 'DeploymentInProgress', message),
    inPlace
      ? buildCondition('Progressing', false, 'AllComponentsReady', 'All components are ready.')
      : buildCondition('Progressing', true, 'DeploymentInProgress', message),
    problems.length === 0
      ? buildCondition('Degraded', false, 'AllComponentsReady', 'All components are ready.')
      : buildCondition('Degraded', true, inPlace ? 'ComponentUnhealthy' : 'CannotKeepObjects', message),
    buildCondition('DeleteProtectionAvailable', protection.isAvailable, protection.reason, protection.message),
  ];
  return {
    ...kubevirt.status,
    phase: inPlace || wasDeployed ? 'Deployed' : 'Deploying',
    operatorVersion: VERSION,
    observedKubeVirtVersion: VERSION,
    targetKubeVirtVersion: VERSION,
    conditions: conditions.reduce<readonly Condition[]>(
      (list, condition) => setCondition(list, condition, now),
      (kubevirt.status?.conditions ?? []) as Condition[],
    ) as Condition[],
  };
}

function buildCondition(type: string, isTrue: boolean, reason: string, message: string) {
  return { type, status: isTrue ? ('True' as const) : ('False' as const), reason, message };
}

/** Describes problems of an object that is in place but does not work. */
function findUnhealthy(wanted: DesiredObject, object: Stored<ConditionedObject> | undefined): string[] {
  const { conditions } = object?.status ?? {};
  const name = idOf(wanted);
  if (object?.metadata.deletionTimestamp !== undefined) return [`${name} is being deleted`];
  const types = wanted.type.kind === 'APIService' ? ['Available'] : ['Established', 'NamesAccepted'];
  return [
    ...types.flatMap((type) => {
      const condition = findCondition(conditions, type);
      return condition?.status === 'False' ? [`${name} is not ${type}: ${condition.message ?? ''}`] : [];
    }),
    ...(hasTypeErrors(object) ? [`${name} has expressions with type errors`] : []),
  ];
}
