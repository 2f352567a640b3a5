/**
 * Orders a list that strategic merge patch has merged. Items that the patch (or its $setElementOrder) contains come in
 * its order. Items that only the server has keep their order, and come before the first item of the patch that they
 * preceded on the server.
 */

/** Returns what identifies an item: the value of its merge key, or the item itself in a list of scalars. */
export type ItemIdentity = (item: unknown) => unknown;

export function orderMerged(
  merged: readonly unknown[],
  inPatch: readonly unknown[],
  onServer: readonly unknown[],
  identity: ItemIdentity,
): unknown[] {
  const patchRank = computeRanks(inPatch, identity);
  const serverRank = computeRanks(onServer, identity);
  const fromPatch = merged.filter((item) => patchRank.has(identity(item)));
  // These come from the server's list and so are in its order.
  const serverOnly = merged.filter((item) => !patchRank.has(identity(item)));
  fromPatch.sort(byRank(patchRank, identity));
  return interleave(serverOnly, fromPatch, serverRank, identity);
}

/** Returns the position of the first item with each identity. */
function computeRanks(items: readonly unknown[], identity: ItemIdentity): Map<unknown, number> {
  const rank = new Map<unknown, number>();
  items.forEach((item, i) => {
    const id = identity(item);
    if (!rank.has(id)) rank.set(id, i);
  });
  return rank;
}

/** Compares by rank. Array.sort is stable, so unknown items stay in their order after the known ones. */
function byRank(rank: ReadonlyMap<unknown, number>, identity: ItemIdentity) {
  const rankOf = (item: unknown) => rank.get(identity(item)) ?? Number.MAX_SAFE_INTEGER;
  return (a: unknown, b: unknown) => rankOf(a) - rankOf(b);
}

/** Keeps the order within both lists. Between them, the order on the server decides if the server has both items. */
function interleave(
  serverOnly: readonly unknown[],
  fromPatch: readonly unknown[],
  serverRank: ReadonlyMap<unknown, number>,
  identity: ItemIdentity,
): unknown[] {
  const result: unknown[] = [];
  let next = 0;
  for (const item of fromPatch) {
    // An item that is new to the server comes before the remaining items of the server.
    const rank = serverRank.get(identity(item)) ?? -1;
    while (next < serverOnly.length && (serverRank.get(identity(serverOnly[next])) ?? rank) < rank) {
      result.push(serverOnly[next++]);
    }
    result.push(item);
  }
  return result.concat(serverOnly.slice(next));
}
