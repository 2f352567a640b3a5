/** Whether protected VMs are protected: the rules by which the API server does that, as they are right now. Pure. */
import type { Stored } from '#kube/meta.ts';
import { idOf, repair, type Desired, type Present } from '#operator/desired.ts';
import type { Reporting } from '#operator/kinds.ts';
import { deleteProtection } from '#operator/objects/delete-protection.ts';
import { missingWithoutPolicies, type PolicySupport } from '#operator/policy-support.ts';
import { toldOf } from '#operator/told.ts';

export interface ProtectionHealth {
  readonly isAvailable: boolean;
  readonly reason: string;
  readonly message: string;
}

interface Fault {
  readonly reason: string;
  readonly message: string;
}

/** `present`: of all that the operator keeps, or of these rules alone. */
export function protectionHealth(policies: PolicySupport, present: Present): ProtectionHealth {
  if (policies === 'missing') {
    return { isAvailable: false, reason: 'KubernetesTooOld', message: missingWithoutPolicies };
  }
  const found = new Map(present);
  const faults = deleteProtection.flatMap((wanted) => faultOf(wanted, found.get(wanted)) ?? []);
  const [first] = faults;
  if (first === undefined) {
    return { isAvailable: true, reason: 'PoliciesInPlace', message: 'Protected VirtualMachines cannot be deleted.' };
  }
  return { isAvailable: false, reason: first.reason, message: toldOf(faults.map(({ message }) => message)) };
}

function faultOf(wanted: Desired, object: Stored<Reporting> | undefined): Fault | undefined {
  const name = idOf(wanted);
  if (object === undefined) return { reason: 'PolicyMissing', message: `${name} is missing` };
  if (object.metadata.deletionTimestamp !== undefined) {
    return { reason: 'PolicyBeingDeleted', message: `${name} is being deleted` };
  }
  if (repair(wanted, object) !== undefined) {
    return { reason: 'PolicyChanged', message: `${name} is not as it should be` };
  }
  if (hasTypeErrors(object)) {
    return { reason: 'PolicyHasTypeErrors', message: `${name} has expressions with type errors` };
  }
  return undefined;
}

export function hasTypeErrors(object: Stored<Reporting> | undefined): boolean {
  const { typeChecking } = object?.status ?? {};
  const warnings = (typeChecking as { expressionWarnings?: readonly unknown[] } | undefined)?.expressionWarnings ?? [];
  return warnings.length > 0;
}
