/** The handle of our volume snapshots encodes where the data is: on one node, or on shared storage. Pure. */

export type SnapshotPlace =
  | { readonly scope: 'node'; readonly node: string; readonly id: string }
  | { readonly scope: 'shared'; readonly id: string };

/** Valid names of nodes and snapshots. They become paths, so slashes and leading dots are excluded. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Returns `node/node-1/snapcontent-…` or `shared/snapcontent-…`. */
export function formatSnapshotHandle(place: SnapshotPlace): string {
  return place.scope === 'node' ? `node/${place.node}/${place.id}` : `shared/${place.id}`;
}

/** Returns undefined if the handle is not one of ours. */
export function parseSnapshotHandle(handle: string): SnapshotPlace | undefined {
  const [scope, ...names] = handle.split('/');
  if (!names.every((name) => NAME.test(name))) return undefined;
  const [first, second] = names;
  if (scope === 'node' && names.length === 2 && first !== undefined && second !== undefined) {
    return { scope, node: first, id: second };
  }
  return scope === 'shared' && names.length === 1 && first !== undefined ? { scope, id: first } : undefined;
}
