/** Writes the type-checking warnings to the status of ValidatingAdmissionPolicies. */
import { checkTypes } from '#engine/admission/policies/type-check.ts';
import type { Policy } from '#engine/admission/policies/policy-spec.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_CRDS } from '#engine/controllers/kinds.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { type Stored, resourceAs } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';
import { POLICIES } from '#kube/cluster-kinds.ts';

const ADMISSION_POLICIES = resourceAs<Policy>(POLICIES);

interface PolicyWorld {
  readonly policy: Stored<Policy>;
  readonly resources: readonly Resource[];
}

/** Computes the status of one policy. Pure. */
function decidePolicy({ policy, resources }: PolicyWorld): Plan {
  const expressionWarnings = checkTypes(policy.spec ?? {}, resources);
  const status = {
    ...(policy['status'] as object | undefined),
    observedGeneration: policy.metadata.generation,
    typeChecking: expressionWarnings.length === 0 ? {} : { expressionWarnings },
  };
  return { status, changes: [] };
}

export const policyStatusController: EngineController = {
  account: 'validatingadmissionpolicy-status-controller',
  start(parts) {
    const policies = parts.informer(ADMISSION_POLICIES);
    // A new kind may match existing policies.
    const definitions = parts.informer(ENGINE_CRDS);
    const controller = defineController<PolicyWorld>({
      name: 'validating-admission-policy',
      type: ADMISSION_POLICIES,
      sources: [source(policies), source(definitions, () => policies.list().map(({ metadata }) => metadata.name))],
      observe(key) {
        const policy = policies.get(key);
        return policy && { policy, resources: parts.registry.resources };
      },
      decide: decidePolicy,
      subject: ({ policy }) => policy,
    });
    return startController(controller, { ...parts, events: noEvents });
  },
};
