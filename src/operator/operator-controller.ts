/**
 * The operator maintains our definitions, roles, policies, webhook configurations and classes. It reverts changes and
 * deletions by users, but keeps other labels and annotations, and the settings.
 *
 *   are policies served? ──► accounts, policies, webhooks ──► definitions ──► Established
 *                        ──► everything else, and the status of the KubeVirt object
 *
 * Its own account and permissions must exist before (bootstrap.ts).
 */
import { uuidAdmissionSince, VM_DEFINITION } from '#api/identity/uuid-admission.ts';
import { objectKey } from '#client/object-key.ts';
import type { PresentObjects } from '#operator/desired.ts';
import { admissionController, waitForAdmission } from '#operator/admission-controller.ts';
import { definitionsController, definitionsEstablished } from '#operator/definitions-controller.ts';
import { installationController } from '#operator/installation-controller.ts';
import { MUTATING_WEBHOOKS } from '#kube/cluster-kinds.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '#kube/core-kinds.ts';
import { deleteProtectionPolicies } from '#operator/objects/delete-protection.ts';
import { findPolicySupport, POLICIES_MISSING_MESSAGE } from '#operator/policy-support.ts';
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
    exposeProtectionGauge(parts, () => false);
    // Checked once: a cluster that is upgraded later gets the policies when the operator restarts.
    const support = findPolicySupport(parts);
    const handover = new AbortController();
    const admission = startWhenReady('operator-admission', support, (policies) =>
      startController(admissionController({ informer, policies, trust }), {
        ...parts,
        signal: AbortSignal.any([signal, handover.signal]),
      }),
    );
    const inPlace = support.then(
      async (policies) => policies !== undefined && (await waitForAdmission({ informer, policies, trust }, { signal })),
    );
    const mayDefine = Promise.race([inPlace, waitUntilServed(parts)]).then((may) => may || undefined);
    // Two controllers must not maintain the same objects.
    const takenOver = waitUntilServed(parts).then(async (isServed) => {
      if (!isServed) return undefined;
      const policies = await support;
      handover.abort();
      await admission.stopped;
      return policies;
    });
    return [
      admission,
      startWhenReady('operator-definitions', mayDefine, () =>
        startController(
          definitionsController(informer(CUSTOM_RESOURCE_DEFINITIONS), informer(MUTATING_WEBHOOKS)),
          parts,
        ),
      ),
      startWhenReady('operator', takenOver, (policies) => {
        const { log } = parts;
        if (policies === 'missing') log.warn({}, POLICIES_MISSING_MESSAGE);
        else exposeProtectionGauge(parts, () => protectionHealth(policies, presentPolicies(informer)).isAvailable);
        return startController(installationController({ ...parts, policies, trust }), parts);
      }),
    ];
  },
});

/** Evaluated at each scrape: the gauge drops at once if a policy is removed, even if the operator cannot restore it. */
function exposeProtectionGauge({ metrics }: ControllerParts, isAvailable: () => boolean): void {
  const help =
    '1 if the delete protection of VirtualMachines is in effect, 0 if one of its policies is missing or changed.';
  metrics.gaugeFunc({ name: PROTECTION_GAUGE, help }, () => (isAvailable() ? 1 : 0));
}

function presentPolicies(informer: ControllerParts['informer']): PresentObjects {
  return deleteProtectionPolicies.map((wanted) => [wanted, informer(wanted.type).get(objectKey(wanted.object))]);
}

/** Resolves to true once all of our kinds are served and can be watched, to false if `signal` aborts before. */
export function waitUntilServed({ informer, signal }: Pick<ControllerParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(CUSTOM_RESOURCE_DEFINITIONS);
  return present.waitUntil(() => definitionsEstablished(present), { signal });
}

/** Resolves to true once it is known since when UUIDs are random (api/identity/uuid-admission.ts), to false on abort. */
export function waitForUuidAdmission({
  informer,
  signal,
}: Pick<ControllerParts, 'informer' | 'signal'>): Promise<boolean> {
  const present = informer(CUSTOM_RESOURCE_DEFINITIONS);
  return present.waitUntil(() => uuidAdmissionSince(present.get(VM_DEFINITION)) !== undefined, { signal });
}

/** Starts the controller with the result of `ready`; never if that is undefined, as after an abort. Idle until then. */
function startWhenReady<T>(
  name: string,
  ready: Promise<T | undefined>,
  start: (required: T) => RunningController,
): RunningController {
  const started = ready.then((required) => (required === undefined ? undefined : start(required)));
  let running: RunningController | undefined;
  void started.then((controller) => (running = controller));
  return {
    name,
    enqueue: (key) => running?.enqueue(key),
    idle: async () => await running?.idle(),
    findOverdue: async () => (await running?.findOverdue?.()) ?? [],
    get violations() {
      return running?.violations ?? [];
    },
    get kindsRead() {
      return running?.kindsRead;
    },
    stopped: started.then(async (controller) => await controller?.stopped),
  };
}
