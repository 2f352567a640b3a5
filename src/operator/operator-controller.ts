/**
 * The operator: keeps our definitions, roles, policies, webhook configurations and classes in place. What somebody
 * changes or deletes is put right again; labels and annotations of others stay, and so do settings.
 *
 *   definitions ──► Established ──► are policies served? ──► everything else, and the status of the KubeVirt object
 *
 * Its own account and rights must be there before: bootstrap.ts.
 */
import { objectKey } from '#client/object-key.ts';
import type { Present } from '#operator/desired.ts';
import { definitionsController, definitionsEstablished } from '#operator/definitions-controller.ts';
import { installationController } from '#operator/installation-controller.ts';
import { DEFINITIONS } from '#operator/kinds.ts';
import { startLate } from '#operator/late-controller.ts';
import { deleteProtection } from '#operator/objects/delete-protection.ts';
import { findPolicySupport, missingWithoutPolicies, type PolicySupport } from '#operator/policy-support.ts';
import { protectionHealth } from '#operator/protection-health.ts';
import type { Trust } from '#operator/trust.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { startController, type RunningController } from '#runtime/controller.ts';

export const OPERATOR_ACCOUNT = 'selfsame-operator';
const PROTECTION_GAUGE = 'selfsame_delete_protection_available';

export const operatorController = (trust?: Trust) => ({
  account: OPERATOR_ACCOUNT,
  eventSource: OPERATOR_ACCOUNT,
  start(parts: ControllerParts): readonly RunningController[] {
    const present = parts.informer(DEFINITIONS);
    tellProtection(parts, () => false);
    return [
      startController(definitionsController(present), parts),
      startLate('operator', policySupport(parts), (policies) => {
        const { informer, log } = parts;
        if (policies === 'missing') log.warn({}, missingWithoutPolicies);
        else tellProtection(parts, () => protectionHealth(policies, presentRules(informer)).isAvailable);
        return startController(installationController({ ...parts, policies, trust }), parts);
      }),
    ];
  },
});

/** Asked once: a cluster that is upgraded later gets the policies when the operator starts anew. */
async function policySupport(parts: ControllerParts): Promise<PolicySupport | undefined> {
  return (await served(parts)) ? await findPolicySupport(parts) : undefined;
}

/** Looked up at each reading: it falls at once when a rule goes, also where the operator cannot put it back. */
function tellProtection({ metrics }: ControllerParts, isAvailable: () => boolean): void {
  const help = 'Whether protected VirtualMachines cannot be deleted: 1 while the policies are in place, else 0.';
  metrics.gauge(PROTECTION_GAUGE, help, () => (isAvailable() ? 1 : 0));
}

function presentRules(informer: ControllerParts['informer']): Present {
  return deleteProtection.map((wanted) => [wanted, informer(wanted.type).get(objectKey(wanted.object))]);
}

/** True as soon as all of our kinds are served, false when `signal` was aborted before: then may others watch them. */
export function served({ informer, signal }: Pick<ControllerParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(DEFINITIONS);
  return present.until(() => definitionsEstablished(present), { signal });
}
