/** Decides whether delete protection is in effect, from the current state of its policies. Pure. */
import type { Stored } from '#kube/meta.ts';
import { idOf, repair, type DesiredObject, type PresentObjects } from '#operator/desired.ts';
import type { ConditionedObject } from '#kube/core-kinds.ts';
import { deleteProtectionPolicies } from '#operator/objects/delete-protection.ts';
import { POLICIES_MISSING_MESSAGE, type PolicySupport } from '#operator/policy-support.ts';

interface ProtectionHealth {
  readonly isAvailable: boolean;
  readonly reason: string;
  readonly message: string;
}

interface PolicyProblem {
  readonly reason: string;
  readonly message: string;
}

/** `present` has at least the policies of the delete protection. */
export function protectionHealth(policies: PolicySupport, present: PresentObjects): ProtectionHealth {
  if (policies === 'missing') {
    return { isAvailable: false, reason: 'KubernetesTooOld', message: POLICIES_MISSING_MESSAGE };
  }
  const found = new Map(present);
  const problems = deleteProtectionPolicies.flatMap((wanted) => findProblem(wanted, found.get(wanted)) ?? []);
  const [first] = problems;
  if (first === undefined) {
    return { isAvailable: true, reason: 'PoliciesInPlace', message: 'Protected VirtualMachines cannot be deleted.' };
  }
  return { isAvailable: false, reason: first.reason, message: joinProblems(problems.map(({ message }) => message)) };
}

function findProblem(wanted: DesiredObject, object: Stored<ConditionedObject> | undefined): PolicyProblem | undefined {
  const name = idOf(wanted);
  if (object === undefined) return { reason: 'PolicyMissing', message: `${name} is missing` };
  if (object.metadata.deletionTimestamp !== undefined) {
    return { reason: 'PolicyBeingDeleted', message: `${name} is being deleted` };
  }
  if (repair(wanted, object) !== undefined) {
    return { reason: 'PolicyChanged', message: `${name} differs from its desired state` };
  }
  if (hasTypeErrors(object)) {
    return { reason: 'PolicyHasTypeErrors', message: `${name} has expressions with type errors` };
  }
  return undefined;
}

export function hasTypeErrors(object: Stored<ConditionedObject> | undefined): boolean {
  const { typeChecking } = object?.status ?? {};
  const warnings = (typeChecking as { expressionWarnings?: readonly unknown[] } | undefined)?.expressionWarnings ?? [];
  return warnings.length > 0;
}

/** Limits the length of a message; the log has all problems. */
const MAX_LISTED = 5;

export function joinProblems(problems: readonly string[]): string {
  const more = problems.length - MAX_LISTED;
  return [...problems.slice(0, MAX_LISTED), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
