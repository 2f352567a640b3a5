/**
 * The counts behind the status of quotas, for the controller that writes it: the present use of a quota, and the quotas
 * that a write affects. Counts the same objects in the same way as admission (quota-usage.ts).
 */
import type { Amounts } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import { plainCountNames } from '#engine/admission/limits/measure.ts';
import { parseQuota, type Quota, quotaOf, QUOTAS } from '#engine/admission/limits/quota.ts';
import {
  countUse,
  measureEntry,
  nextChangeMs,
  prepareCount,
  type Spend,
} from '#engine/admission/limits/quota-usage.ts';
import { splitId } from '#engine/registry/stored-entries.ts';
import type { Store, StoreEvent } from '#engine/store/store.ts';
import type { ResourceQuota } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Quantity } from '#kube/quantity.ts';

interface QuotaCount {
  /** The use of each limited resource that objects can use. */
  readonly used: Amounts;
  /** The time at which the use changes without a write; undefined if there is none. */
  readonly changesAtMs: number | undefined;
}

export interface QuotaCounts {
  count(quota: Stored<ResourceQuota>, nowMs: number): Promise<QuotaCount>;
  /** Calls `add` with `namespace/name` of each quota whose use changes. Returns a function that ends this. */
  follow(add: (key: string) => void): () => void;
}

export function quotaCounts(store: Store, spend: Spend): QuotaCounts {
  return {
    async count(object, nowMs) {
      const { namespace = '', name } = object.metadata;
      const quota = parseQuota({ namespace, name }, object);
      const used = new Map<string, Quantity>();
      for (const [collection, names] of quota.resources) {
        await prepareCount(store, [quota], { collection, spend });
        for (const [resource, amount] of countUse(store, quota, { collection, names, nowMs })) {
          used.set(resource, amount);
        }
      }
      return { used, changesAtMs: nextChangeMs(store, quota, nowMs) };
    },
    follow: (add) => {
      const follower = new QuotaFollower(store, add);
      return () => follower.stop();
    },
  };
}

/** Watches the collections that quotas count. */
class QuotaFollower {
  readonly #store: Store;
  readonly #add: (key: string) => void;
  readonly #quotas = new Map<string, Quota>();
  /** The functions that end the watches, by collection. */
  readonly #watches = new Map<string, () => void>();
  readonly #end: () => void;

  constructor(store: Store, add: (key: string) => void) {
    this.#store = store;
    this.#add = add;
    for (const entry of store.list(QUOTAS).entries) this.#quotas.set(entry.id, quotaOf(entry));
    this.#end = store.watch({ collection: QUOTAS, since: store.revision }, (events) => this.#noteQuotas(events));
    this.#watchCounted();
  }

  stop(): void {
    this.#end();
    for (const end of this.#watches.values()) end();
    this.#watches.clear();
  }

  #noteQuotas(events: readonly StoreEvent[]): void {
    for (const { type, entry } of events) {
      if (type === 'put') this.#quotas.set(entry.id, quotaOf(entry));
      else this.#quotas.delete(entry.id);
    }
    this.#watchCounted();
  }

  #watchCounted(): void {
    const counted = new Set([...this.#quotas.values()].flatMap(({ resources }) => [...resources.keys()]));
    for (const [collection, end] of this.#watches) {
      if (counted.has(collection)) continue;
      end();
      this.#watches.delete(collection);
    }
    for (const collection of counted) {
      if (this.#watches.has(collection)) continue;
      const since = this.#store.revision;
      this.#watches.set(
        collection,
        this.#store.watch({ collection, since }, (events) => this.#noteObjects(events)),
      );
    }
  }

  #noteObjects(events: readonly StoreEvent[]): void {
    for (const event of events) {
      const { namespace } = splitId(event.entry.id);
      for (const [key, quota] of this.#quotas) {
        if (quota.namespace === namespace && changesUse(quota, event)) this.#add(key);
      }
    }
  }
}

function changesUse({ resources, scopes }: Quota, { type, entry, previous }: StoreEvent): boolean {
  const names = resources.get(entry.collection);
  if (names === undefined) return false;
  if (type === 'delete' || previous === undefined) return true;
  const plain = plainCountNames(entry.collection);
  if (scopes.length === 0 && names.every((name) => plain.includes(name))) return false;
  const [now, before] = [measureEntry(entry), measureEntry(previous)];
  if (now.endsAtMs !== before.endsAtMs || now.amounts.size !== before.amounts.size) return true;
  if (!deepEqual(now.facts, before.facts)) return true;
  return names.some((name) => now.amounts.get(name)?.nanos !== before.amounts.get(name)?.nanos);
}
