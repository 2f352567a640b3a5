/** Keeps the registry in step with the CustomResourceDefinitions in the store: a kind is served once it is Established. */
import { decodeStored } from '#engine/codec.ts';
import { isEstablished } from '#engine/registry/crd/crd-status.ts';
import { CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import { resourcesOfCrd } from '#engine/registry/custom-resource.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import type { Log } from '#lib/log.ts';

/** Returns what ends the tracking. The registry is right as soon as this returns. */
export function trackCustomKinds(store: Store, registry: Registry, log: Log): () => void {
  const made = new WeakMap<Entry, readonly Resource[]>();
  const refresh = () => {
    const { entries } = store.list(CRD_COLLECTION);
    registry.setCustom(entries.flatMap((entry) => resources(entry)));
  };
  const resources = (entry: Entry): readonly Resource[] => {
    let known = made.get(entry);
    // A definition of a kind that is our own is never served, whatever its status says.
    if (known === undefined) made.set(entry, (known = registry.isBuiltIn(entry.id) ? [] : servedBy(entry, log)));
    return known;
  };
  const stop = store.watch({ collection: CRD_COLLECTION, since: store.revision }, refresh);
  refresh();
  return stop;
}

/** A definition that turns out to be impossible takes itself out of service, not the others. */
function servedBy(entry: Entry, log: Log): readonly Resource[] {
  try {
    const crd = decodeStored(entry.bytes);
    return isEstablished(crd) ? resourcesOfCrd(crd) : [];
  } catch (error) {
    log.error({ err: error, definition: entry.id }, 'Cannot serve a custom kind');
    return [];
  }
}
