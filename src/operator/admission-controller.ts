/**
 * Creates the objects that must exist before our kinds are served: accounts, policies and webhook configurations. It
 * stops when the kinds are served; from then on installation-controller.ts maintains these objects as well and reports
 * on them.
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { groupResource, type KubeObject, type ResourceType } from '#kube/meta.ts';
import { repair, type DesiredObject, type PresentObjects } from '#operator/desired.ts';
import { MUTATING_WEBHOOKS, POLICIES, POLICY_BINDINGS, VALIDATING_WEBHOOKS } from '#kube/cluster-kinds.ts';
import { objectsBeforeKinds } from '#operator/objects/installation.ts';
import type { PolicySupport } from '#operator/policy-support.ts';
import { withTrust, type Trust } from '#operator/trust.ts';
import { watchDesired } from '#operator/watch-desired.ts';
import { defineController, type ControllerDefinition } from '#runtime/controller.ts';

interface AdmissionControllerParts {
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly policies: PolicySupport;
  readonly trust?: Trust | undefined;
}

const POLICY_TYPES: ReadonlySet<ResourceType> = new Set([POLICIES, POLICY_BINDINGS]);
const WEBHOOK_TYPES: ReadonlySet<ResourceType> = new Set([MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS]);
/** The only key: all objects are reconciled together. */
const KEY = 'admission';

export function admissionController({
  informer,
  policies,
  trust,
}: AdmissionControllerParts): ControllerDefinition<PresentObjects> {
  const wanted = objectsBeforeKinds.filter(({ type }) => policies === 'served' || !POLICY_TYPES.has(type));
  const types = new Map(wanted.map(({ type }) => [groupResource(type), type]));
  return defineController<PresentObjects>({
    name: 'operator-admission',
    type: MUTATING_WEBHOOKS,
    sources: [...types.values()].map((type) => watchDesired(informer(type), wanted, () => KEY)),
    observe: () => wanted.map((one) => presentOf(one, { informer, policies, trust })),
    decide: (present) => ({
      changes: present.flatMap(([one, object]) => repair(one, object) ?? []),
      continueOnError: true,
    }),
    subject: () => undefined,
  });
}

function presentOf(wanted: DesiredObject, { informer, trust }: AdmissionControllerParts): PresentObjects[number] {
  const { type, object } = wanted;
  return [withTrust(wanted, trust?.bundle()), informer(type).get(objectKey(object))];
}

/** Resolves to true once all policies and webhook configurations match their desired state, to false on abort. */
export async function waitForAdmission(
  parts: AdmissionControllerParts,
  { signal }: { signal: AbortSignal },
): Promise<boolean> {
  const awaited = [...WEBHOOK_TYPES, ...(parts.policies === 'served' ? POLICY_TYPES : [])];
  for (const type of awaited) {
    const wanted = objectsBeforeKinds.filter((one) => one.type === type);
    const isInPlace = (one: DesiredObject) => {
      const [desired, present] = presentOf(one, parts);
      return present !== undefined && repair(desired, present) === undefined;
    };
    if (!(await parts.informer(type).waitUntil(() => wanted.every(isInPlace), { signal }))) return false;
  }
  return true;
}
