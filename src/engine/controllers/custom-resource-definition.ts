/**
 * CustomResourceDefinitions: accepts names, establishes, and removes all objects of a kind before the kind itself.
 *
 *   created ──► NamesAccepted, Established ──► deleted: Terminating, objects are deleted ──► none left: finalizer goes
 *
 * Serving the kind is registry/custom-kinds.ts's, which looks at the same conditions.
 */
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '#engine/controllers/kinds.ts';
import { leftovers, type Leftovers } from '#engine/controllers/leftovers.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import { crdStatus, isEstablished } from '#engine/registry/crd/crd-status.ts';
import { CRD_CLEANUP_FINALIZER, type Crd } from '#engine/registry/crd/definition.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { MAX_CHANGES, type Change, type Plan } from '#runtime/plan.ts';

export interface CrdWorld {
  readonly crd: Stored<Crd>;
  readonly all: readonly Stored<Crd>[];
  readonly builtIns: readonly Resource[];
  /** Objects of the kind; looked up only under deletion. */
  readonly objects: Leftovers;
  readonly now: string;
}

const NONE: Leftovers = { toDelete: [], any: false };

/** Objects that wait for their finalizers are looked at again after this time. */
const LOOK_AGAIN_MS = 500;

/** Pure. */
export function decideCrd({ crd, all, builtIns, objects, now }: CrdWorld): Plan {
  const status = { ...crdStatus(crd, all, now, builtIns) };
  if (crd.metadata.deletionTimestamp === undefined) return { status, changes: [] };
  if (objects.any) {
    return { status, changes: objects.toDelete.map((object) => deletion(crd, object)), requeueAfterMs: LOOK_AGAIN_MS };
  }
  return { status, changes: release(crd) };
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
  const version = spec.versions.find(({ served }) => served) ?? spec.versions.find(({ storage }) => storage);
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
    const builtIns = () => registry.resources.filter(({ builtIn }) => builtIn);
    const controller = defineController<CrdWorld>({
      name: 'custom-resource-definition',
      type: CUSTOM_RESOURCE_DEFINITIONS,
      // A name that one definition gives up may be another's: each change makes all be looked at.
      sources: [source(informer, () => informer.list().map(({ metadata }) => metadata.name))],
      async observe(key, { signal }) {
        const crd = informer.get(key);
        if (crd === undefined) return undefined;
        const leaving = crd.metadata.deletionTimestamp !== undefined && isEstablished(crd);
        const objects = leaving ? await leftovers(client, servedType(crd), { atMost: MAX_CHANGES, signal }) : NONE;
        return { crd, all: informer.list(), builtIns: builtIns(), objects, now: timestamp(clock.now()) };
      },
      decide: decideCrd,
      subject: ({ crd }) => crd,
    });
    return startController(controller, { ...parts, events: noEvents });
  },
};
