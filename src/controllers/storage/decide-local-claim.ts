/**
 * Decides what the provisioner does for one claim: creates its volume and expands it. Pure.
 *
 *   unbound ──node is known, or none is needed──► volume created ──bound by the cluster──► bound
 *        └──from a snapshot: when it is ready; a node-local snapshot decides the node of the volume
 *   bound ──requests more──► capacity of the volume raised ──no pod uses it──► new size in the claim; the file follows
 *                                   └──a pod uses it──► FileSystemResizePending, until the node has expanded it
 *          nothing is expanded while a guest moves the data to another node
 */
import { SELECTED_NODE, STORAGE_PROVISIONER } from '#kube/volume-keys.ts';
import {
  buildLocalVolume,
  isLocalVolume,
  type VolumeCopy,
  localVolumeName,
} from '#controllers/shared/local-storage/local-volume.ts';
import {
  type DataOrigin,
  dataOriginOf,
  type SnapshotSource,
} from '#controllers/shared/local-storage/snapshot-source.ts';
import { INCOMING_NODE_ANNOTATION, LOCAL_PROVISIONER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { refuseClaim, refuseSize, scopeOf } from '#api/storage/local-class.ts';
import type { StorageSize } from '#api/storage/storage-size.ts';
import { findCondition, setCondition } from '#kube/conditions.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity, type Quantity } from '#kube/quantity.ts';
import { EMPTY_PLAN, type Change, type Plan } from '#runtime/plan.ts';

/** Permanent: pods get a node only after such a claim is bound. */
const NO_NODE_SELECTED =
  'it keeps volumes on a node, and no node is selected; set volumeBindingMode: WaitForFirstConsumer';
const RESIZE_PENDING = 'FileSystemResizePending';
/** A deleted node may come back with the data. */
const LOST_NODE_RETRY_MS = 30_000;

export interface LocalClaimWorld {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly storageClass?: Stored<StorageClass>;
  /** The volume in the spec of the claim, else the one that was created for it. */
  readonly volume?: Stored<PersistentVolume>;
  /** True if the node that was selected for the claim exists. */
  readonly selectedNodeExists: boolean;
  /** The node of a pod that uses the claim. */
  readonly consumerNode?: string;
  /** The VolumeSnapshot from which the claim is filled, if there is one. */
  readonly source: SnapshotSource;
  /** True if the node of a node-local snapshot exists, or if the snapshot is shared. */
  readonly sourceNodeExists: boolean;
  /** The sizes of the storage of all nodes that report one, by name. */
  readonly sizes: ReadonlyMap<string, StorageSize>;
  /** A node that can copy data on shared storage. */
  readonly copier?: string;
  readonly now: string;
}

export function decideLocalClaim(world: LocalClaimWorld): Plan {
  const { claim } = world;
  if (claim.metadata.deletionTimestamp !== undefined) return EMPTY_PLAN;
  return claim.spec.volumeName ? expand(world) : provision(world);
}

function provision(world: LocalClaimWorld): Plan {
  const { claim, storageClass, volume, selectedNodeExists } = world;
  if (storageClass?.provisioner !== LOCAL_PROVISIONER || volume !== undefined) return EMPTY_PLAN;
  const isRequested = claim.metadata.annotations?.[STORAGE_PROVISIONER] === LOCAL_PROVISIONER;
  const waitsForConsumer = storageClass.volumeBindingMode === 'WaitForFirstConsumer';
  const origin = dataOriginOf(claim, world.source);
  // The cluster asks only when there is a consumer. A node-local snapshot decides the node without one.
  if (!isRequested && (!waitsForConsumer || origin.is === 'empty')) return EMPTY_PLAN;
  const reason = refuseClaim(claim, storageClass) ?? (origin.is === 'refused' ? origin.why : undefined);
  if (reason !== undefined) return failProvisioning(storageClass, reason);
  const selected = claim.metadata.annotations?.[SELECTED_NODE];
  const node = selected ?? world.consumerNode;
  const tooLarge = refuseSize(claim, storageClass, { sizes: world.sizes, node });
  if (tooLarge !== undefined) return failProvisioning(storageClass, tooLarge);
  if (origin.is === 'waiting') return EMPTY_PLAN;
  if (!world.sourceNodeExists)
    return { ...failProvisioning(storageClass, sourceNodeLost(origin)), requeueAfterMs: LOST_NODE_RETRY_MS };
  const fixedNode = scopeOf(storageClass) === 'node' ? snapshotNodeOf(origin) : undefined;
  if (fixedNode !== undefined)
    return createVolume(world, storageClass, fixedNode, selectCopy(world, origin, fixedNode));
  if (!isRequested) return EMPTY_PLAN;
  if (selected !== undefined && !selectedNodeExists) return unselectNode(claim, selected);
  if (waitsForConsumer && node === undefined) return EMPTY_PLAN;
  if (scopeOf(storageClass) === 'node' && node === undefined) return failProvisioning(storageClass, NO_NODE_SELECTED);
  const target = scopeOf(storageClass) === 'node' ? node : undefined;
  return createVolume(world, storageClass, node, selectCopy(world, origin, target));
}

function createVolume(
  { claim }: LocalClaimWorld,
  storageClass: Stored<StorageClass>,
  node: string | undefined,
  copy: VolumeCopy | undefined,
): Plan {
  const object = buildLocalVolume(claim, storageClass, node, copy);
  const reason = 'ProvisioningSucceeded';
  const why = `Successfully provisioned volume ${localVolumeName(claim)}`;
  return { changes: [{ do: 'create', type: PERSISTENT_VOLUMES, object, reason, why }] };
}

/**
 * Selects the node that copies. If snapshot and volume are shared, any node can; decideLocalVolume replaces a lost one.
 */
function selectCopy(
  { copier }: LocalClaimWorld,
  origin: DataOrigin,
  target: string | undefined,
): VolumeCopy | undefined {
  if (origin.is !== 'ready') return undefined;
  return { handle: origin.handle, node: snapshotNodeOf(origin) ?? target ?? copier };
}

function snapshotNodeOf(origin: DataOrigin): string | undefined {
  return origin.is === 'ready' && origin.place.scope === 'node' ? origin.place.node : undefined;
}

function sourceNodeLost(origin: DataOrigin): string {
  return `node ${snapshotNodeOf(origin)}, which has the snapshot, does not exist any more`;
}

function failProvisioning({ metadata }: Stored<StorageClass>, why: string): Plan {
  const message = `failed to provision volume with StorageClass "${metadata.name}": ${why}`;
  return { changes: [], events: [{ type: 'Warning', reason: 'ProvisioningFailed', message }] };
}

/** Removes the annotation, so that the scheduler selects another node. */
function unselectNode({ metadata }: LocalClaimWorld['claim'], node: string): Plan {
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [SELECTED_NODE]: null } } } };
  const why = `The selected node ${node} does not exist any more`;
  const target = { type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid };
  return { changes: [{ do: 'patch', ...target, patch, why, reason: 'NodeGone' }] };
}

function expand(world: LocalClaimWorld): Plan {
  const { claim, volume, storageClass } = world;
  if (volume === undefined || claim.status?.phase !== 'Bound' || !isLocalVolume(volume)) return EMPTY_PLAN;
  if (volume.spec.claimRef?.uid !== claim.metadata.uid) return EMPTY_PLAN;
  // The removal of the annotation at the end of the migration triggers another reconcile.
  if (volume.metadata.annotations?.[INCOMING_NODE_ANNOTATION] !== undefined) return EMPTY_PLAN;
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  const isLarger = isLess(volume.spec.capacity['storage'], requested);
  if (isLarger && storageClass?.allowVolumeExpansion !== true) {
    const message = `Cannot expand the volume: StorageClass "${claim.spec.storageClassName ?? ''}" does not set allowVolumeExpansion`;
    return { changes: [], events: [{ type: 'Warning', reason: 'VolumeResizeFailed', message }] };
  }
  if (isLarger && storageClass !== undefined) {
    const tooLarge = refuseSize(claim, storageClass, { sizes: world.sizes, node: dataNodeOf(volume) });
    if (tooLarge !== undefined) {
      const message = `Cannot expand the volume: ${tooLarge}`;
      return { changes: [], events: [{ type: 'Warning', reason: 'VolumeResizeFailed', message }] };
    }
  }
  const size = isLarger ? requested : (volume.spec.capacity['storage'] ?? 0);
  const changes = isLarger ? [raiseCapacity(volume, size)] : [];
  return { changes: [...changes, ...reportSize(world, size)] };
}

/** Returns the node that has the data, or undefined if the volume is shared. */
function dataNodeOf({ metadata, spec }: Stored<PersistentVolume>): string | undefined {
  return metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? spec.csi?.volumeAttributes?.['node'];
}

function raiseCapacity({ metadata }: Stored<PersistentVolume>, storage: string | number): Change {
  const patch = { type: 'merge' as const, body: { spec: { capacity: { storage } } } };
  const { name, uid } = metadata;
  return { do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why: 'the claim requests more storage' };
}

/** Reports the size in the claim. Without a consumer at once: the file is expanded before the next guest starts. */
function reportSize({ claim, consumerNode, now }: LocalClaimWorld, size: string | number): Change[] {
  const { status, metadata } = claim;
  const isBehind = isLess(status?.capacity?.['storage'], size);
  const pending = findCondition(status?.conditions, RESIZE_PENDING);
  if (isBehind && consumerNode !== undefined) {
    if (pending?.status === 'True') return [];
    const message = 'Waiting for the node of the pod to expand the volume.';
    const condition = { type: RESIZE_PENDING, status: 'True' as const, message };
    const conditions = setCondition(status?.conditions, condition, now);
    return [patchStatus(metadata, { conditions }, 'The node has to expand the volume', 'FileSystemResizeRequired')];
  }
  if (!isBehind && pending === undefined) return [];
  const conditions = (status?.conditions ?? []).filter(({ type }) => type !== RESIZE_PENDING);
  const capacity = isBehind ? { capacity: { storage: size } } : {};
  return [patchStatus(metadata, { ...capacity, conditions }, 'The volume was expanded', 'VolumeResizeSuccessful')];
}

function patchStatus(
  { namespace, name, uid }: LocalClaimWorld['claim']['metadata'],
  status: object,
  why: string,
  reason: string,
): Change {
  const patch = { type: 'merge' as const, body: { status } };
  const target = { type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, subresource: 'status' };
  return { do: 'patch', ...target, patch, why, reason };
}

function isLess(a: string | number | undefined, b: string | number): boolean {
  return compareQuantities(quantityOf(a ?? 0), quantityOf(b)) < 0;
}

function quantityOf(value: string | number): Quantity {
  return parseQuantity(String(value));
}
