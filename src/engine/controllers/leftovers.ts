/** What is left to be deleted of a kind: objects that nobody has begun to delete, and whether there is anything at all. */
import type { Reader } from '#client/client.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';

export interface Leftovers {
  /** As many as were asked for. */
  readonly toDelete: readonly Stored[];
  /** Objects that wait for their finalizers count, too. */
  readonly any: boolean;
}

export interface LeftoverRange {
  readonly namespace?: string;
  readonly atMost: number;
  readonly signal: AbortSignal;
}

const PAGE = 500;

/** Looks past objects that are under deletion already: they must not hide those that are not. */
export async function leftovers(reader: Reader, type: ResourceType, range: LeftoverRange): Promise<Leftovers> {
  const { namespace, atMost, signal } = range;
  const toDelete: Stored[] = [];
  let any = false;
  let next: string | undefined;
  do {
    const page = await reader.list(type, { namespace, limit: PAGE, continue: next, signal });
    any ||= page.items.length > 0;
    for (const object of page.items) {
      if (object.metadata.deletionTimestamp === undefined && toDelete.length < atMost) toDelete.push(object);
    }
    next = page.metadata.continue;
  } while (next !== undefined && toDelete.length < atMost);
  return { toDelete, any };
}
