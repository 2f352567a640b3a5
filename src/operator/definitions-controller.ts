/**
 * Maintains the definitions of our kinds, and records in the definition of VirtualMachines since when uuid admission is
 * active (api/identity/uuid-admission.ts). It starts when admission is in place or the kinds are served already.
 */
import { UUID_ADMISSION_ANNOTATION, uuidAdmissionSince, VM_DEFINITION } from '#api/identity/uuid-admission.ts';
import type { Informer } from '#client/informer.ts';
import { isTrue } from '#kube/conditions.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { repair, type DesiredObject } from '#operator/desired.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, type ConditionedObject } from '#kube/core-kinds.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { MUTATING_CONFIGURATION, webhookObjects } from '#operator/objects/webhooks.ts';
import { watchDesired } from '#operator/watch-desired.ts';
import { defineController, type ControllerDefinition } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface DefinitionWorld {
  readonly wanted: DesiredObject;
  readonly present: Stored | undefined;
  /** Creation time of the mutating webhook configuration, by the clock of the API server. */
  readonly admissionSince: string | undefined;
}

const byName = new Map(definitions.map((wanted) => [wanted.object.metadata.name ?? '', wanted]));

export function definitionsController(
  present: Informer<ConditionedObject>,
  mutatingWebhooks: Informer<KubeObject>,
): ControllerDefinition<DefinitionWorld> {
  return defineController<DefinitionWorld>({
    name: 'operator-definitions',
    type: CUSTOM_RESOURCE_DEFINITIONS,
    sources: [
      watchDesired(present, definitions, (name) => name),
      watchDesired(mutatingWebhooks, webhookObjects, () => VM_DEFINITION),
    ],
    observe(name) {
      const wanted = byName.get(name);
      const admissionSince = mutatingWebhooks.get(MUTATING_CONFIGURATION)?.metadata.creationTimestamp;
      return wanted && { wanted, present: present.get(name), admissionSince };
    },
    decide: decideDefinition,
    subject: () => undefined,
  });
}

export function decideDefinition({ wanted, present, admissionSince }: DefinitionWorld): Plan {
  const since = uuidAdmissionSince(present) ?? admissionSince;
  const isVm = wanted.object.metadata.name === VM_DEFINITION;
  const change = repair(isVm && since !== undefined ? annotateSince(wanted, since) : wanted, present);
  return change === undefined ? EMPTY_PLAN : { changes: [change] };
}

function annotateSince(wanted: DesiredObject, since: string): DesiredObject {
  const { metadata } = wanted.object;
  const annotations = { ...metadata.annotations, [UUID_ADMISSION_ANNOTATION]: since };
  return { ...wanted, object: { ...wanted.object, metadata: { ...metadata, annotations } } };
}

/** Reports whether all of our kinds are served. Watching them earlier fails. */
export function definitionsEstablished(present: Informer<ConditionedObject>): boolean {
  return [...byName.keys()].every((name) => isTrue(present.get(name)?.status?.conditions, 'Established'));
}
