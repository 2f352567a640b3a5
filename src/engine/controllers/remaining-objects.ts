/**
 * Lists the objects of a kind that remain to be deleted, and counts all of them. deletion-round.ts decides which of them
 * come next.
 */
import type { Reader } from '#client/client.ts';
import { objectKey } from '#client/object-key.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';

/** The result of one listing. */
export interface RemainingObjects {
  /** Objects after `after` that are not under deletion, at most `atMost`. */
  readonly toDelete: readonly Stored[];
  /** The number of objects, including those that are under deletion and wait for their finalizers. */
  readonly count: number;
  /** The number of objects that each finalizer holds. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** True if every object was listed and `toDelete` was not cut off. Otherwise the counts are too small. */
  readonly complete: boolean;
}

export interface RemainingRange {
  readonly namespace?: string;
  readonly atMost: number;
  /** Only objects after this key, in the order of the API, are returned in `toDelete`. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
}

const PAGE = 500;

/** Lists pages until `toDelete` is full. Objects that are already under deletion do not count towards `atMost`. */
export async function listRemainingObjects(
  reader: Reader,
  type: ResourceType,
  range: RemainingRange,
): Promise<RemainingObjects> {
  const { namespace, atMost, after = '', signal } = range;
  const toDelete: Stored[] = [];
  const finalizers = new Map<string, number>();
  let count = 0;
  let complete = true;
  let next: string | undefined;
  do {
    const page = await reader.list(type, { namespace, limit: PAGE, continue: next, signal });
    count += page.items.length;
    for (const object of page.items) {
      for (const name of object.metadata.finalizers ?? []) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
      if (object.metadata.deletionTimestamp !== undefined || objectKey(object) <= after) continue;
      if (toDelete.length < atMost) toDelete.push(object);
      else complete = false;
    }
    next = page.metadata.continue || undefined;
  } while (next !== undefined && complete && toDelete.length < atMost);
  return { toDelete, count, finalizers, complete: complete && next === undefined };
}
