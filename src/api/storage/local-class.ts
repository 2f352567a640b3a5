/** Decides which claims a storage class of `selfsame.io/local` can serve: the provisioner and uploads ask. Pure. */
import type { StorageSize } from '#api/storage/storage-size.ts';
import type { PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { compareQuantities, formatQuantity, parseQuantity } from '#kube/quantity.ts';

/** `node`: the data is on one node. `shared`: it is in a directory of all nodes. */
type VolumeScope = 'node' | 'shared';

/** Returns undefined if the class has an unknown scope. */
export function scopeOf({ parameters }: StorageClass): VolumeScope | undefined {
  const scope = parameters?.['scope'] ?? 'node';
  return scope === 'node' || scope === 'shared' ? scope : undefined;
}

/** Returns why the class cannot serve the claim, or undefined if it can. */
export function refuseClaim(
  { spec }: Stored<PersistentVolumeClaim>,
  storageClass: Stored<StorageClass>,
): string | undefined {
  const { name } = storageClass.metadata;
  const scope = scopeOf(storageClass);
  if (scope === undefined) return `StorageClass "${name}": parameters.scope must be "node" or "shared"`;
  const unknown = Object.keys(storageClass.parameters ?? {}).find((key) => key !== 'scope');
  if (unknown !== undefined) return `StorageClass "${name}": parameters.${unknown} is unknown`;
  const many = spec.accessModes?.find((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany');
  if (scope === 'node' && many !== undefined) {
    return `StorageClass "${name}" keeps a volume on one node and cannot provide ${many}; use a class with scope "shared"`;
  }
  if (spec.selector !== undefined) return 'claim.spec.selector is not supported';
  return spec.resources?.requests?.['storage'] === undefined
    ? 'claim.spec.resources.requests.storage is not set'
    : undefined;
}

interface Places {
  /** The sizes of the storage of all nodes that report one, by name. */
  readonly sizes: ReadonlyMap<string, StorageSize>;
  /** The node that gets a volume that is not shared, if it is known. */
  readonly node: string | undefined;
}

/**
 * Returns why no node can ever hold the volume of the claim, or undefined if one can, or if a node does not report the size
 * of its storage. If the node is known, only this one counts.
 */
export function refuseSize(
  { spec }: PersistentVolumeClaim,
  storageClass: StorageClass,
  { sizes, node }: Places,
): string | undefined {
  const isShared = scopeOf(storageClass) === 'shared';
  const nodes = [...sizes].filter(([name]) => isShared || node === undefined || name === node);
  const limits = nodes.map(([, { nodeBytes, sharedBytes }]) => (isShared ? sharedBytes : nodeBytes));
  const requested = spec.resources?.requests?.['storage'] ?? 0;
  if (limits.length === 0 || limits.some((bytes) => isAtMost(requested, bytes))) return undefined;
  const place = isShared ? 'the shared storage' : node === undefined ? 'no node' : `node ${node}`;
  const largest = formatQuantity({ nanos: BigInt(Math.max(...limits)) * 1_000_000_000n, format: 'BinarySI' });
  const can = node === undefined && !isShared ? 'can hold more than' : 'can hold at most';
  return `it requests ${requested}, but ${place} ${can} ${largest}; request less, or add storage`;
}

function isAtMost(requested: string | number, bytes: number): boolean {
  return compareQuantities(parseQuantity(String(requested)), parseQuantity(String(bytes))) <= 0;
}
