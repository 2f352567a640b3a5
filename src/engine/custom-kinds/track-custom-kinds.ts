/**
 * Keeps the registry in sync with the CustomResourceDefinitions in the store: a kind is served once it is Established.
 */
import { decodeStored } from '#engine/encoding/stored-object.ts';
import { ConversionWebhooks } from '#engine/conversion/conversion-webhooks.ts';
import { isEstablished } from '#engine/registry/crd/crd-status.ts';
import { asCrd, CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import { resourcesOfCrd } from '#engine/custom-kinds/custom-resource.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { type Clock, systemClock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { KubeObject } from '#kube/meta.ts';

interface TrackOptions {
  /** Conversion webhooks that run in this process. */
  readonly services?: LocalServices;
  readonly clock?: Clock;
}

/** Starts tracking and returns a function that ends it. The registry is up to date when this returns. */
export function trackCustomKinds(store: Store, registry: Registry, log: Log, options: TrackOptions = {}): () => void {
  const { services = new LocalServices(), clock = systemClock } = options;
  const webhooks = new ConversionWebhooks({ store, services, clock });
  const resourcesByEntry = new WeakMap<Entry, readonly Resource[]>();
  const ages = new Map<string, DefinitionAge>();
  const refresh = () => {
    const { entries } = store.list(CRD_COLLECTION);
    const all = entries.flatMap((entry) => resources(entry));
    registry.setCustom(all);
    webhooks.keepOnly(new Set(all.map(({ stored }) => stored?.webhook)));
    dropDeleted(ages, entries);
  };
  const resources = (entry: Entry): readonly Resource[] => {
    let known = resourcesByEntry.get(entry);
    // A definition of a built-in kind is never served, regardless of its status.
    if (known === undefined) resourcesByEntry.set(entry, (known = registry.isBuiltIn(entry.id) ? [] : servedBy(entry)));
    return known;
  };
  /** An invalid definition takes only itself out of service. */
  const servedBy = (entry: Entry): readonly Resource[] => {
    try {
      const crd = decodeStored(entry.bytes);
      const since = sinceOf(ages, entry, crd);
      if (!isEstablished(crd)) return [];
      const { strategy, webhook } = asCrd(crd).spec.conversion ?? {};
      const conversionWebhook = strategy === 'Webhook' ? webhooks.of(entry.id, webhook ?? {}) : undefined;
      return resourcesOfCrd(crd, { since, webhook: conversionWebhook });
    } catch (error) {
      log.error({ err: error, definition: entry.id }, 'Cannot serve a custom kind');
      return [];
    }
  };
  const stop = store.watch({ collection: CRD_COLLECTION, since: store.revision }, refresh);
  refresh();
  return () => {
    stop();
    webhooks.keepOnly(new Set());
  };
}

/** The revision since which a definition has its current generation. */
interface DefinitionAge {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly since: number;
}

/**
 * Returns the revision since which the definition has its current generation. After a restart, the revision of the last
 * write is the best estimate.
 */
function sinceOf(ages: Map<string, DefinitionAge>, { id, revision }: Entry, { metadata }: KubeObject): number {
  const { uid, generation } = metadata;
  const known = ages.get(id);
  if (known !== undefined && known.uid === uid && known.generation === generation) return known.since;
  ages.set(id, { uid, generation, since: revision });
  return revision;
}

function dropDeleted(ages: Map<string, DefinitionAge>, entries: readonly Entry[]): void {
  if (ages.size <= entries.length) return;
  const kept = new Set(entries.map(({ id }) => id));
  for (const id of ages.keys()) if (!kept.has(id)) ages.delete(id);
}
