/** What is left to be deleted of a kind: objects that nobody has begun to delete, and whether there is anything at all. */
import type { Reader } from '#client/client.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';

export interface Leftovers {
  /** As many as were asked for. */
  readonly toDelete: readonly Stored[];
  /** Objects that wait for their finalizers count, too. */
  readonly any: boolean;
}

/** What one look has found. */
export interface Survey extends Leftovers {
  /** Whether it has seen everything: otherwise there is too much to delete for one plan, and the counts are too small. */
  readonly complete: boolean;
  /** How many a delete does not remove at once: they have finalizers or are under deletion already. */
  readonly held: number;
  /** How many objects each finalizer holds. */
  readonly finalizers: ReadonlyMap<string, number>;
}

export interface LeftoverRange {
  readonly namespace?: string;
  readonly atMost: number;
  readonly signal: AbortSignal;
}

const PAGE = 500;

/** Looks past objects that are under deletion already: they must not hide those that are not. */
export async function leftovers(reader: Reader, type: ResourceType, range: LeftoverRange): Promise<Survey> {
  const { namespace, atMost, signal } = range;
  const toDelete: Stored[] = [];
  const finalizers = new Map<string, number>();
  let any = false;
  let held = 0;
  let next: string | undefined;
  do {
    const page = await reader.list(type, { namespace, limit: PAGE, continue: next, signal });
    any ||= page.items.length > 0;
    for (const object of page.items) {
      const { deletionTimestamp, finalizers: holders = [] } = object.metadata;
      if (deletionTimestamp === undefined && toDelete.length < atMost) toDelete.push(object);
      if (deletionTimestamp !== undefined || holders.length > 0) held++;
      for (const name of holders) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
    next = page.metadata.continue;
  } while (next !== undefined && toDelete.length < atMost);
  return { toDelete, any, complete: next === undefined, held, finalizers };
}
