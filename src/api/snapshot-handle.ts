/** The handle of a volume snapshot of ours says where its data lies: on one node, or where all nodes reach it. Pure. */

export type SnapshotPlace =
  | { readonly scope: 'node'; readonly node: string; readonly id: string }
  | { readonly scope: 'shared'; readonly id: string };

/** Of nodes and of snapshots, as Kubernetes names objects: no slash, nothing that leads elsewhere. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** `node/node-1/snapcontent-…`, `shared/snapcontent-…`. */
export function formatSnapshotHandle(place: SnapshotPlace): string {
  return place.scope === 'node' ? `node/${place.node}/${place.id}` : `shared/${place.id}`;
}

/** Undefined for what is none of ours. */
export function parseSnapshotHandle(handle: string): SnapshotPlace | undefined {
  const [scope, ...names] = handle.split('/');
  if (!names.every((name) => NAME.test(name))) return undefined;
  const [first, second] = names;
  if (scope === 'node' && names.length === 2 && first !== undefined && second !== undefined) {
    return { scope, node: first, id: second };
  }
  return scope === 'shared' && names.length === 1 && first !== undefined ? { scope, id: first } : undefined;
}
