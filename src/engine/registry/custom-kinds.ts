/** Keeps the registry in step with the CustomResourceDefinitions in the store: a kind is served once it is Established. */
import { decodeStored } from '#engine/codec.ts';
import { resourcesOfCrd } from '#engine/registry/custom-resource.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { isTrue, type Condition } from '#kube/conditions.ts';
import type { KubeObject } from '#kube/meta.ts';

export const CRD_COLLECTION = 'customresourcedefinitions.apiextensions.k8s.io';

/** Returns what ends the tracking. The registry is right as soon as this returns. */
export function trackCustomKinds(store: Store, registry: Registry): () => void {
  const made = new WeakMap<Entry, readonly Resource[]>();
  const refresh = () => {
    const { entries } = store.list(CRD_COLLECTION);
    registry.setCustom(entries.flatMap((entry) => resources(entry)));
  };
  const resources = (entry: Entry): readonly Resource[] => {
    let known = made.get(entry);
    if (known === undefined) made.set(entry, (known = servedBy(decodeStored(entry.bytes))));
    return known;
  };
  const stop = store.watch({ collection: CRD_COLLECTION, since: store.revision }, refresh);
  refresh();
  return stop;
}

function servedBy(crd: KubeObject): readonly Resource[] {
  const { conditions } = (crd['status'] ?? {}) as { conditions?: Condition[] };
  if (!isTrue(conditions, 'Established')) return [];
  const resources = resourcesOfCrd(crd);
  if (crd.metadata.deletionTimestamp === undefined) return resources;
  // While its objects are being removed nothing new may come.
  return resources.map((resource) => ({ ...resource, verbs: resource.verbs.filter((verb) => verb !== 'create') }));
}
