/** One ResourceQuota as a value: its hard limits, its scopes, and the resources that it limits in each collection. */
import { type Amounts, amountsOf } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import { collectionOfResource } from '#engine/admission/limits/measure.ts';
import type { ScopeRequirement } from '#engine/registry/kinds/core/quota-scope-rules.ts';
import { peekObject, splitId } from '#engine/registry/stored-entries.ts';
import type { Entry } from '#engine/store/store.ts';
import type { ResourceQuota } from '#kube/core-kinds.ts';

export const QUOTAS = 'resourcequotas';

export interface Quota {
  readonly namespace: string;
  readonly name: string;
  readonly hard: Amounts;
  readonly scopes: readonly ScopeRequirement[];
  /** The names of the limited resources, by the collection whose objects use them. */
  readonly resources: ReadonlyMap<string, readonly string[]>;
}

const known = new WeakMap<Entry, Quota>();

/** Returns the quota of an entry, computed once per version. */
export function quotaOf(entry: Entry): Quota {
  let quota = known.get(entry);
  if (quota === undefined) {
    quota = parseQuota(splitId(entry.id), peekObject(entry));
    known.set(entry, quota);
  }
  return quota;
}

export function parseQuota(id: { namespace: string; name: string }, { spec = {} }: ResourceQuota): Quota {
  const hard = amountsOf(spec.hard);
  const resources = new Map<string, string[]>();
  for (const name of hard.keys()) {
    const collection = collectionOfResource(name);
    if (collection === undefined) continue;
    const names = resources.get(collection);
    if (names === undefined) resources.set(collection, [name]);
    else names.push(name);
  }
  const scopes = (spec.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' }));
  return {
    ...id,
    hard,
    scopes: [...scopes, ...(spec.scopeSelector?.matchExpressions ?? [])],
    resources,
  };
}
