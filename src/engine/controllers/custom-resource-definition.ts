/**
 * CustomResourceDefinitions: accepts names, establishes, and removes all objects of a kind before the kind itself.
 *
 *   created ──► NamesAccepted, Established ──► deleted: Terminating, objects are deleted ──► none left: finalizer goes
 *
 * Serving the kind is registry/custom-kinds.ts's, which looks at the same conditions.
 */
import { objectKey } from '#client/object-key.ts';
import { DeletionRounds, lookAgainMs } from '#engine/controllers/deletion-round.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '#engine/controllers/kinds.ts';
import { leftovers, type Leftovers } from '#engine/controllers/leftovers.ts';
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

/** The plan asks for earlier looks as long as something is left. */
const OBJECTS_RECHECK: Recheck = {
  type: ANY_KIND,
  everyMs: 60_000,
  because: 'the objects of a kind are looked at only while the kind is being deleted',
};

export interface CrdWorld {
  readonly crd: Stored<Crd>;
  readonly all: readonly Stored<Crd>[];
  readonly builtIns: readonly Resource[];
  /** Objects of the kind; looked up only under deletion. */
  readonly objects: Pick<Leftovers, 'toDelete' | 'count' | 'complete'>;
  /** Looks that saw all objects and found as many as the one before. */
  readonly quiet: number;
  readonly now: string;
}

const NONE: CrdWorld['objects'] = { toDelete: [], count: 0, complete: true };

/** Pure. */
export function decideCrd(world: CrdWorld): Plan {
  const { crd, objects, quiet } = world;
  if (crd.metadata.deletionTimestamp === undefined) return { status: statusOf(world), changes: [] };
  if (objects.count === 0) return { status: statusOf(world), changes: release(crd) };
  // What was refused is told until a whole round has shown otherwise.
  const known = findCondition(crd.status?.conditions, 'Terminating')?.reason === FAILED;
  return {
    status: known ? statusOf(world) : statusOf(world, IN_PROGRESS),
    changes: objects.toDelete.map((object) => deletion(crd, object)),
    goOn: true,
    requeueAfterMs: lookAgainMs({ complete: objects.complete, quiet }),
  };
}

/** The status after the deletes. Says nothing before all objects were seen. Pure. */
export function concludeCrd(world: CrdWorld, refused: readonly string[]): Plan['status'] {
  if (!world.objects.complete) return undefined;
  if (refused.length === 0) return statusOf(world, IN_PROGRESS);
  const [only = ''] = refused;
  const why = refused.length === 1 ? only : `[${refused.join(', ')}]`;
  return statusOf(world, { reason: FAILED, message: `could not issue all deletes: ${why}` });
}

interface Terminating {
  readonly reason: string;
  readonly message: string;
}

const FAILED = 'InstanceDeletionFailed';
const IN_PROGRESS: Terminating = {
  reason: 'InstanceDeletionInProgress',
  message: 'CustomResource deletion is in progress',
};

function statusOf({ crd, all, builtIns, now }: CrdWorld, terminating?: Terminating): NonNullable<Plan['status']> {
  const status = crdStatus(crd, all, now, builtIns);
  if (terminating === undefined) return { ...status };
  const next = { type: 'Terminating', status: 'True', ...terminating } as const;
  return { ...status, conditions: setCondition(status.conditions, next, now) };
}

function deletion(crd: Crd, { metadata }: Stored): Change {
  const { name, namespace, uid } = metadata;
  const why = `the definition ${crd.metadata.name} is being deleted`;
  return { do: 'delete', type: servedType(crd), name: { name, namespace }, uid, why };
}

function release(crd: Stored<Crd>): Change[] {
  const at = crd.metadata.finalizers?.indexOf(CRD_CLEANUP_FINALIZER) ?? -1;
  if (at < 0) return [];
  return [
    {
      do: 'patch',
      type: CUSTOM_RESOURCE_DEFINITIONS,
      name: { name: crd.metadata.name },
      uid: crd.metadata.uid,
      patch: { type: 'json', body: removeListItem('/metadata/finalizers', at, CRD_CLEANUP_FINALIZER) },
      why: 'no object of the kind is left',
    },
  ];
}

function servedType({ spec, status }: Crd): ResourceType {
  const names = status?.acceptedNames?.plural ? status.acceptedNames : spec.names;
  const served = spec.versions.filter((version) => version.served);
  // As they are stored, no webhook need convert them: it may be gone already.
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
    const informer = parts.informer(CUSTOM_RESOURCE_DEFINITIONS);
    // As Kubernetes, which deletes them namespace by namespace.
    const rounds = new DeletionRounds((change) => (change.do === 'delete' ? (change.name.namespace ?? '') : ''));
    const builtIns = () => registry.resources.filter(({ builtIn }) => builtIn);
    const controller = defineController<CrdWorld>({
      name: 'custom-resource-definition',
      type: CUSTOM_RESOURCE_DEFINITIONS,
      // A name that one definition gives up may be another's: each change makes all be looked at.
      sources: [source(informer, () => informer.list().map(({ metadata }) => metadata.name))],
      rechecks: [OBJECTS_RECHECK],
      async observe(key, { signal }) {
        const crd = informer.get(key);
        const known = { all: informer.list(), builtIns: builtIns(), now: timestamp(clock.now()) };
        if (crd?.metadata.deletionTimestamp === undefined || !isEstablished(crd)) {
          rounds.forget(key);
          return crd && { ...known, crd, objects: NONE, quiet: 0 };
        }
        const { uid } = crd.metadata;
        const after = rounds.of(key, uid).after?.key;
        const objects = await leftovers(client, servedType(crd), { atMost: MAX_CHANGES, after, signal });
        const last = objects.toDelete.at(-1);
        const place = last && { kind: key, key: objectKey(last) };
        const { count, complete } = objects;
        const { quiet } = rounds.looked(key, uid, { count, complete, last: place });
        return { ...known, crd, objects, quiet };
      },
      decide: decideCrd,
      conclude: (world, failures) => concludeCrd(world, rounds.learn(world.crd.metadata.name, failures)),
      subject: ({ crd }) => crd,
    });
    return startController(controller, { ...parts, events: noEvents });
  },
};
