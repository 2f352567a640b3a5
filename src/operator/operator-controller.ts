/**
 * The operator: keeps our definitions, roles, policies, webhook configurations and classes in place. What somebody
 * changes or deletes is put right again; labels and annotations of others stay, and so do settings.
 *
 *   are policies served? ──► accounts, policies, webhooks ──► definitions ──► Established
 *                        ──► everything else, and the status of the KubeVirt object
 *
 * Its own account and rights must be there before: bootstrap.ts.
 */
import { uuidAdmissionSince, VM_DEFINITION } from '#api/uuid-admission.ts';
import { objectKey } from '#client/object-key.ts';
import type { Present } from '#operator/desired.ts';
import { admissionController, admissionInPlace } from '#operator/admission-controller.ts';
import { definitionsController, definitionsEstablished } from '#operator/definitions-controller.ts';
import { installationController } from '#operator/installation-controller.ts';
import { DEFINITIONS, MUTATING_WEBHOOKS } from '#operator/kinds.ts';
import { startLate } from '#operator/late-controller.ts';
import { deleteProtection } from '#operator/objects/delete-protection.ts';
import { findPolicySupport, missingWithoutPolicies } from '#operator/policy-support.ts';
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
    const { informer, signal } = parts;
    tellProtection(parts, () => false);
    // Asked once: a cluster that is upgraded later gets the policies when the operator starts anew.
    const support = findPolicySupport(parts);
    const taken = new AbortController();
    const admission = startLate('operator-admission', support, (policies) =>
      startController(admissionController({ informer, policies, trust }), {
        ...parts,
        signal: AbortSignal.any([signal, taken.signal]),
      }),
    );
    const inPlace = support.then(
      async (policies) => policies !== undefined && (await admissionInPlace({ informer, policies, trust }, { signal })),
    );
    const mayDefine = Promise.race([inPlace, served(parts)]).then((may) => may || undefined);
    // Two controllers must not keep the same objects.
    const takenOver = served(parts).then(async (isServed) => {
      if (!isServed) return undefined;
      const policies = await support;
      taken.abort();
      await admission.stopped;
      return policies;
    });
    return [
      admission,
      startLate('operator-definitions', mayDefine, () =>
        startController(definitionsController(informer(DEFINITIONS), informer(MUTATING_WEBHOOKS)), parts),
      ),
      startLate('operator', takenOver, (policies) => {
        const { log } = parts;
        if (policies === 'missing') log.warn({}, missingWithoutPolicies);
        else tellProtection(parts, () => protectionHealth(policies, presentRules(informer)).isAvailable);
        return startController(installationController({ ...parts, policies, trust }), parts);
      }),
    ];
  },
});

/** Looked up at each reading: it falls at once when a rule goes, also where the operator cannot put it back. */
function tellProtection({ metrics }: ControllerParts, isAvailable: () => boolean): void {
  const help = 'Whether protected VirtualMachines cannot be deleted: 1 while the policies are in place, else 0.';
  metrics.gauge(PROTECTION_GAUGE, help, () => (isAvailable() ? 1 : 0));
}

function presentRules(informer: ControllerParts['informer']): Present {
  return deleteProtection.map((wanted) => [wanted, informer(wanted.type).get(objectKey(wanted.object))]);
}

/** Resolves to true as soon as all of our kinds are served and may be watched, to false when `signal` aborts before. */
export function served({ informer, signal }: Pick<ControllerParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(DEFINITIONS);
  return present.until(() => definitionsEstablished(present), { signal });
}

/** Resolves to true as soon as it is known since when uuids are random (api/uuid-admission.ts), to false on abort. */
export function uuidAdmissionKnown({
  informer,
  signal,
}: Pick<ControllerParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(DEFINITIONS);
  return present.until(() => uuidAdmissionSince(present.get(VM_DEFINITION)) !== undefined, { signal });
}
