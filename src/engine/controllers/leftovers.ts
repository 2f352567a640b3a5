/**
 * What is left to be deleted of a kind: objects that nobody has begun to delete, and whether there is anything at all.
 * Which of them are in turn is deletion-round.ts's.
 */
import type { Reader } from '#client/client.ts';
import { objectKey } from '#client/object-key.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';

/** What one look has found. */
export interface Leftovers {
  /** Those in turn, as many as were asked for. */
  readonly toDelete: readonly Stored[];
  /** How many there are; objects that wait for their finalizers count, too. */
  readonly count: number;
  /** How many objects each finalizer holds. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** Whether all were seen, and all that are in turn were taken: otherwise the counts are too small. */
  readonly complete: boolean;
}

export interface LeftoverRange {
  readonly namespace?: string;
  readonly atMost: number;
  /** Only what comes after this key, in the order of the API, is in turn. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
}

const PAGE = 500;

/** Looks past objects that are under deletion already: they must not hide those that are not. */
export async function leftovers(reader: Reader, type: ResourceType, range: LeftoverRange): Promise<Leftovers> {
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
