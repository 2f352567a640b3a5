/**
 * The order of a list that a strategic merge has joined. Items that the patch (or its $setElementOrder) names come in
 * the order it names them; items that only the server has keep their order, and go in front of the first named item
 * that they preceded on the server.
 */

/** What identifies an item: the value of its merge key, or the item itself in a list of scalars. */
export type Identity = (item: unknown) => unknown;

export function orderMerged(
  merged: readonly unknown[],
  named: readonly unknown[],
  onServer: readonly unknown[],
  identity: Identity,
): unknown[] {
  const namedRank = ranks(named, identity);
  const serverRank = ranks(onServer, identity);
  const fromPatch = merged.filter((item) => namedRank.has(identity(item)));
  // They come from the server's list, and so in its order.
  const serverOnly = merged.filter((item) => !namedRank.has(identity(item)));
  fromPatch.sort(byRank(namedRank, identity));
  return interleave(serverOnly, fromPatch, serverRank, identity);
}

/** Position of the first item with each identity. */
function ranks(items: readonly unknown[], identity: Identity): Map<unknown, number> {
  const rank = new Map<unknown, number>();
  items.forEach((item, i) => {
    const id = identity(item);
    if (!rank.has(id)) rank.set(id, i);
  });
  return rank;
}

/** Array.sort is stable: unknown items stay behind the known ones in the order they had. */
function byRank(rank: ReadonlyMap<unknown, number>, identity: Identity) {
  const rankOf = (item: unknown) => rank.get(identity(item)) ?? Number.MAX_SAFE_INTEGER;
  return (a: unknown, b: unknown) => rankOf(a) - rankOf(b);
}

/** Keeps the order within both lists; that of the server decides between them where it knows both items. */
function interleave(
  serverOnly: readonly unknown[],
  fromPatch: readonly unknown[],
  serverRank: ReadonlyMap<unknown, number>,
  identity: Identity,
): unknown[] {
  const result: unknown[] = [];
  let next = 0;
  for (const item of fromPatch) {
    // An item that is new to the server waits for none of the server's.
    const rank = serverRank.get(identity(item)) ?? -1;
    while (next < serverOnly.length && (serverRank.get(identity(serverOnly[next])) ?? rank) < rank) {
      result.push(serverOnly[next++]);
    }
    result.push(item);
  }
  return result.concat(serverOnly.slice(next));
}
