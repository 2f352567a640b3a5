/**
 * Keeps everything but the definitions in place, and says in the status of the KubeVirt object how that goes. One name
 * is looked at, the whole installation: all of it is compared at each change of one of its objects, which are few.
 */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { KUBEVIRTS, type KubeVirt } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { groupResource, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { repair, type Desired } from '#operator/desired.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { installation } from '#operator/objects/installation.ts';
import { installationStatus } from '#operator/status.ts';
import { watched } from '#operator/watched.ts';
import { defineController, type ControllerDefinition } from '#runtime/controller.ts';
import type { Plan } from '#runtime/plan.ts';

const KEY = `${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;

export interface InstallationWorld {
  readonly kubevirt: Stored<KubeVirt> | undefined;
  readonly present: readonly (readonly [Desired, Stored | undefined])[];
  readonly now: string;
}

export interface InstallationParts {
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly clock: Clock;
}

export function installationController({
  informer,
  clock,
}: InstallationParts): ControllerDefinition<InstallationWorld> {
  const types = new Map([...definitions, ...installation].map(({ type }) => [groupResource(type), type]));
  const informers = new Map([...types].map(([key, type]) => [key, informer(type)]));
  const kubevirts = informer(KUBEVIRTS);
  const find = (wanted: Desired) => informers.get(groupResource(wanted.type))?.get(objectKey(wanted.object));
  return defineController<InstallationWorld>({
    name: 'operator',
    type: KUBEVIRTS,
    sources: [...informers.values()].map((one) => watched(one, [...definitions, ...installation], () => KEY)),
    observe: () => ({
      kubevirt: kubevirts.get(KEY),
      present: [...definitions, ...installation].map((wanted) => [wanted, find(wanted)] as const),
      now: timestamp(clock.now()),
    }),
    decide: decideInstallation,
    conclude: ({ kubevirt, present, now }, failures) =>
      kubevirt && installationStatus({ kubevirt, present, failures, now }),
    subject: ({ kubevirt }) => kubevirt,
  });
}

const kept = new Set(installation);

/** The definitions have a controller of their own; here only their state counts. */
export function decideInstallation({ present }: InstallationWorld): Plan {
  const changes = present.flatMap(([wanted, object]) => (kept.has(wanted) ? (repair(wanted, object) ?? []) : []));
  return { changes, goOn: true };
}
