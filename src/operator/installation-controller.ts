/**
 * Maintains all objects except the definitions once our kinds are served, and reports on them in the status of the
 * KubeVirt object. There is one key, the whole installation: each change of one of its few objects reconciles all of
 * them. admission-controller.ts creates the objects that come before the kinds.
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { groupResource, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { idOf, repair, type DesiredObject, type PresentObjects } from '#operator/desired.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';
import { POLICIES, POLICY_BINDINGS } from '#kube/cluster-kinds.ts';
import type { PolicySupport } from '#operator/policy-support.ts';
import { installationStatus } from '#operator/status.ts';
import { withTrust, type Trust } from '#operator/trust.ts';
import { watchDesired } from '#operator/watch-desired.ts';
import { defineController, type ControllerDefinition, type Source } from '#runtime/controller.ts';
import type { Plan } from '#runtime/plan.ts';

const KEY = `${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;

interface InstallationWorld {
  readonly kubevirt: Stored<KubeVirt> | undefined;
  readonly present: PresentObjects;
  readonly policies: PolicySupport;
  readonly now: string;
}

interface InstallationParts {
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly clock: Clock;
  /** If policies are not served, there must be no informer for them: it would never sync. */
  readonly policies: PolicySupport;
  readonly trust?: Trust | undefined;
}

export function installationController({
  informer,
  clock,
  policies,
  trust,
}: InstallationParts): ControllerDefinition<InstallationWorld> {
  const all = [...definitions, ...maintainedObjects].filter(
    ({ type }) => policies === 'served' || !POLICY_TYPES.has(type),
  );
  const types = new Map(all.map(({ type }) => [groupResource(type), type]));
  const informers = new Map([...types].map(([key, type]) => [key, informer(type)]));
  const kubevirts = informer(KUBEVIRTS);
  const find = (wanted: DesiredObject) => informers.get(groupResource(wanted.type))?.get(objectKey(wanted.object));
  return defineController<InstallationWorld>({
    name: 'operator',
    type: KUBEVIRTS,
    sources: [
      ...[...informers.values()].map((one) => watchDesired(one, all, () => KEY)),
      ...(trust === undefined ? [] : [trustSource(kubevirts, trust)]),
    ],
    observe: () => ({
      kubevirt: kubevirts.get(KEY),
      present: all.map((wanted) => [withTrust(wanted, trust?.bundle()), find(wanted)] as const),
      policies,
      now: timestamp(clock.now()),
    }),
    decide: decideInstallation,
    conclude: ({ kubevirt, ...world }, failures) => kubevirt && installationStatus({ ...world, kubevirt, failures }),
    subject: ({ kubevirt }) => kubevirt,
  });
}

const POLICY_TYPES: ReadonlySet<ResourceType> = new Set([POLICIES, POLICY_BINDINGS]);
const maintainedIds = new Set(maintainedObjects.map(idOf));

/** Reconciles when the certificate authorities of our services change. */
function trustSource(cache: Informer<KubeVirt>, trust: Trust): Source {
  return { cache, subscribe: (add) => trust.onChange(() => add(KEY)) };
}

/**
 * Repairs all objects except the definitions, which have a controller of their own; here they only count for the
 * status.
 */
export function decideInstallation({ present }: InstallationWorld): Plan {
  const changes = present.flatMap(([wanted, object]) =>
    maintainedIds.has(idOf(wanted)) ? (repair(wanted, object) ?? []) : [],
  );
  return { changes, continueOnError: true };
}
