/**
 * CustomResourceDefinitions: accepts names, establishes the kind, and deletes all objects of a kind before the kind.
 *
 *   created ──► NamesAccepted, Established ──► deleted: Terminating, objects are deleted ──► none left: finalizer removed
 *
 * custom-kinds/track-custom-kinds.ts serves the kind, based on the same conditions.
 */
import { objectKey } from '#client/object-key.ts';
import { DeletionRounds, roundDelayMs } from '#engine/controllers/deletion-round.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_CRDS } from '#engine/controllers/kinds.ts';
import { listRemainingObjects, type RemainingObjects } from '#engine/controllers/remaining-objects.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import { crdStatus, isEstablished } from '#engine/registry/crd/crd-status.ts';
import { CRD_CLEANUP_FINALIZER, type Crd } from '#engine/registry/crd/definition.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { findCondition, setCondition } from '#kube/conditions.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { ANY_KIND, type Recheck } from '#runtime/decision-reads.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { MAX_CHANGES, type Change, type Plan } from '#runtime/plan.ts';

/** A plan requests an earlier reconcile while objects remain. */
const OBJECTS_RECHECK: Recheck = {
  type: ANY_KIND,
  everyMs: 60_000,
  because: 'the objects of a kind are read only while the kind is being deleted',
};

export interface CrdWorld {
  readonly crd: Stored<Crd>;
  readonly all: readonly Stored<Crd>[];
  readonly builtIns: readonly Resource[];
  /** The objects of the kind. They are read only if the definition is under deletion. */
  readonly objects: Pick<RemainingObjects, 'toDelete' | 'count' | 'complete'>;
  /** The number of complete rounds in a row that found as many objects as the round before. */
  readonly unchangedRounds: number;
  readonly now: string;
}

const NO_OBJECTS: CrdWorld['objects'] = { toDelete: [], count: 0, complete: true };

/** Decides the next step for one definition. Pure. */
export function decideCrd(world: CrdWorld): Plan {
  const { crd, objects, unchangedRounds } = world;
  if (crd.metadata.deletionTimestamp === undefined) return { status: buildStatus(world), changes: [] };
  if (objects.count === 0) return { status: buildStatus(world), changes: removeCleanupFinalizer(crd) };
  // A failure remains reported until a complete round has none.
  const hasFailed = findCondition(crd.status?.conditions, 'Terminating')?.reason === DELETION_FAILED;
  return {
    status: hasFailed ? buildStatus(world) : buildStatus(world, IN_PROGRESS),
    changes: objects.toDelete.map((object) => deleteObject(crd, object)),
    continueOnError: true,
    requeueAfterMs: roundDelayMs({ complete: objects.complete, unchangedRounds }),
  };
}

/** Computes the status after the deletions of a plan, or undefined before all objects were listed. Pure. */
export function concludeCrd(world: CrdWorld, refused: readonly string[]): Plan['status'] {
  if (!world.objects.complete) return undefined;
  if (refused.length === 0) return buildStatus(world, IN_PROGRESS);
  const [only = ''] = refused;
  const why = refused.length === 1 ? only : `[${refused.join(', ')}]`;
  return buildStatus(world, { reason: DELETION_FAILED, message: `could not issue all deletes: ${why}` });
}

interface TerminatingDetails {
  readonly reason: string;
  readonly message: string;
}

const DELETION_FAILED = 'InstanceDeletionFailed';
const IN_PROGRESS: TerminatingDetails = {
  reason: 'InstanceDeletionInProgress',
  message: 'CustomResource deletion is in progress',
};

function buildStatus(
  { crd, all, builtIns, now }: CrdWorld,
  terminating?: TerminatingDetails,
): NonNullable<Plan['status']> {
  const status = crdStatus(crd, all, now, builtIns);
  if (terminating === undefined) return { ...status };
  const next = { type: 'Terminating', status: 'True', ...terminating } as const;
  return { ...status, conditions: setCondition(status.conditions, next, now) };
}

function deleteObject(crd: Crd, { metadata }: Stored): Change {
  const { name, namespace, uid } = metadata;
  const why = `the definition ${crd.metadata.name} is being deleted`;
  return { do: 'delete', type: servedType(crd), name: { name, namespace }, uid, why };
}

function removeCleanupFinalizer(crd: Stored<Crd>): Change[] {
  const at = crd.metadata.finalizers?.indexOf(CRD_CLEANUP_FINALIZER) ?? -1;
  if (at < 0) return [];
  return [
    {
      do: 'patch',
      type: ENGINE_CRDS,
      name: { name: crd.metadata.name },
      uid: crd.metadata.uid,
      patch: { type: 'json', body: removeListItem('/metadata/finalizers', at, CRD_CLEANUP_FINALIZER) },
      why: 'all objects of the kind are deleted',
    },
  ];
}

function servedType({ spec, status }: Crd): ResourceType {
  const names = status?.acceptedNames?.plural ? status.acceptedNames : spec.names;
  const served = spec.versions.filter((version) => version.served);
  // The storage version first: it needs no conversion webhook, which may no longer exist.
  const [version] = [
    ...served.filter(({ storage }) => storage),
    ...served,
    ...spec.versions.filter(({ storage }) => storage),
  ];
  return {
    group: spec.group,
    version: version?.name ?? '',
    kind: names.kind,
    plural: names.plural,
    namespaced: spec.scope === 'Namespaced',
  };
}

export const crdController: EngineController = {
  account: 'crd-controller',
  start(parts) {
    const { client, clock, registry } = parts;
    const informer = parts.informer(ENGINE_CRDS);
    // Like Kubernetes, report one failure per namespace.
    const rounds = new DeletionRounds((change) => (change.do === 'delete' ? (change.name.namespace ?? '') : ''));
    const builtIns = () => registry.resources.filter(({ builtIn }) => builtIn);
    const controller = defineController<CrdWorld>({
      name: 'custom-resource-definition',
      type: ENGINE_CRDS,
      // A name that one definition releases may be accepted for another, so each change enqueues all definitions.
      sources: [source(informer, () => informer.list().map(({ metadata }) => metadata.name))],
      rechecks: [OBJECTS_RECHECK],
      async observe(key, { signal }) {
        const crd = informer.get(key);
        const known = { all: informer.list(), builtIns: builtIns(), now: timestamp(clock.now()) };
        if (crd?.metadata.deletionTimestamp === undefined || !isEstablished(crd)) {
          rounds.forget(key);
          return crd && { ...known, crd, objects: NO_OBJECTS, unchangedRounds: 0 };
        }
        const { uid } = crd.metadata;
        const after = rounds.roundOf(key, uid).after?.key;
        const objects = await listRemainingObjects(client, servedType(crd), { atMost: MAX_CHANGES, after, signal });
        const last = objects.toDelete.at(-1);
        const place = last && { kind: key, key: objectKey(last) };
        const { count, complete } = objects;
        const { unchangedRounds } = rounds.recordObservation(key, uid, { count, complete, last: place });
        return { ...known, crd, objects, unchangedRounds };
      },
      decide: decideCrd,
      conclude: (world, failures) => concludeCrd(world, rounds.recordFailures(world.crd.metadata.name, failures)),
      subject: ({ crd }) => crd,
    });
    return startController(controller, { ...parts, events: noEvents });
  },
};
