/**
 * What the provisioner does about one claim: makes its volume, and lets it grow. Pure.
 *
 *   waits for us ──node is known, or none is needed──► volume made ──bound by the cluster──► serves
 *        └──from a snapshot: when that is ready; one that lies on a node decides where the volume lies
 *   serves ──asks for more──► volume's capacity raised ──nobody runs on it──► claim told the new size; the file follows
 *                                   └──a pod uses it──► FileSystemResizePending, until the node has grown it
 *          while a guest takes its data to another node, nothing of it grows
 */
import { SELECTED_NODE, STORAGE_PROVISIONER } from '#kube/volume-keys.ts';
import {
  buildVolume,
  isOurs,
  refusal,
  scopeOf,
  type VolumeCopy,
  volumeNameFor,
} from '#controllers/storage/local-volume.ts';
import { type Origin, originOf, type SnapshotSource } from '#controllers/storage/snapshot-source.ts';
import { INCOMING_NODE_ANNOTATION, LOCAL_PROVISIONER } from '#api/names.ts';
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
import { NOTHING, type Change, type Plan } from '#runtime/plan.ts';

/** Pods wait for such a claim before they get a node. */
const NO_NODE_EVER =
  'it keeps volumes on a node, and nobody says on which; volumeBindingMode has to be WaitForFirstConsumer';
const RESIZE_PENDING = 'FileSystemResizePending';
/** A node that is gone may come back, with the data. */
const NODE_GONE_RETRY_MS = 30_000;

export interface ClaimWorld {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly storageClass?: Stored<StorageClass>;
  /** The volume that it names, else the one that was made for it. */
  readonly volume?: Stored<PersistentVolume>;
  /** Whether the node that was selected for it is still there. */
  readonly selectedNodeExists: boolean;
  /** The node of a pod that uses it. */
  readonly consumerNode?: string;
  /** What it is made from, where that is a VolumeSnapshot. */
  readonly source: SnapshotSource;
  /** Whether the node is there on which that snapshot lies; true where every node reaches it. */
  readonly sourceNodeExists: boolean;
  /** A node that can copy what every node reaches. */
  readonly copier?: string;
  readonly now: string;
}

export function decideClaim(world: ClaimWorld): Plan {
  const { claim } = world;
  if (claim.metadata.deletionTimestamp !== undefined) return NOTHING;
  return claim.spec.volumeName ? grow(world) : provision(world);
}

function provision(world: ClaimWorld): Plan {
  const { claim, storageClass, volume, selectedNodeExists } = world;
  if (storageClass?.provisioner !== LOCAL_PROVISIONER || volume !== undefined) return NOTHING;
  const asked = claim.metadata.annotations?.[STORAGE_PROVISIONER] === LOCAL_PROVISIONER;
  const waits = storageClass.volumeBindingMode === 'WaitForFirstConsumer';
  const origin = originOf(claim, world.source);
  // Before there is a consumer nobody asks; but the data of a snapshot lies where it lies, whoever comes.
  if (!asked && (!waits || origin.is === 'empty')) return NOTHING;
  const refused = refusal(claim, storageClass) ?? (origin.is === 'refused' ? origin.why : undefined);
  if (refused !== undefined) return failed(storageClass, refused);
  if (origin.is === 'waiting') return NOTHING;
  if (!world.sourceNodeExists)
    return { ...failed(storageClass, sourceGone(origin)), requeueAfterMs: NODE_GONE_RETRY_MS };
  const fixed = scopeOf(storageClass) === 'node' ? nodeOf(origin) : undefined;
  if (fixed !== undefined) return made(world, storageClass, fixed, copyOf(world, origin, fixed));
  if (!asked) return NOTHING;
  const selected = claim.metadata.annotations?.[SELECTED_NODE];
  if (selected !== undefined && !selectedNodeExists) return selectAgain(claim, selected);
  const node = selected ?? world.consumerNode;
  if (waits && node === undefined) return NOTHING;
  if (scopeOf(storageClass) === 'node' && node === undefined) return failed(storageClass, NO_NODE_EVER);
  const target = scopeOf(storageClass) === 'node' ? node : undefined;
  return made(world, storageClass, node, copyOf(world, origin, target));
}

function made(
  { claim }: ClaimWorld,
  storageClass: Stored<StorageClass>,
  node: string | undefined,
  copy: VolumeCopy | undefined,
): Plan {
  const object = buildVolume(claim, storageClass, node, copy);
  const reason = 'ProvisioningSucceeded';
  const why = `Successfully provisioned volume ${volumeNameFor(claim)}`;
  return { changes: [{ do: 'create', type: PERSISTENT_VOLUMES, object, reason, why }] };
}

/** Where both sides are reached from everywhere any node copies; one that is gone is replaced later (decide-volume.ts). */
function copyOf({ copier }: ClaimWorld, origin: Origin, target: string | undefined): VolumeCopy | undefined {
  if (origin.is !== 'ready') return undefined;
  return { handle: origin.handle, node: nodeOf(origin) ?? target ?? copier };
}

function nodeOf(origin: Origin): string | undefined {
  return origin.is === 'ready' && origin.place.scope === 'node' ? origin.place.node : undefined;
}

function sourceGone(origin: Origin): string {
  return `node ${nodeOf(origin)} that holds the snapshot no longer exists`;
}

function failed({ metadata }: Stored<StorageClass>, why: string): Plan {
  const message = `failed to provision volume with StorageClass "${metadata.name}": ${why}`;
  return { changes: [], events: [{ type: 'Warning', reason: 'ProvisioningFailed', message }] };
}

/** Whoever selected it does so again when the annotation is gone. */
function selectAgain({ metadata }: ClaimWorld['claim'], node: string): Plan {
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [SELECTED_NODE]: null } } } };
  const why = `the node ${node} that was selected for it no longer exists`;
  const target = { type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid };
  return { changes: [{ do: 'patch', ...target, patch, why, reason: 'NodeGone' }] };
}

function grow(world: ClaimWorld): Plan {
  const { claim, volume, storageClass } = world;
  if (volume === undefined || claim.status?.phase !== 'Bound' || !isOurs(volume)) return NOTHING;
  if (volume.spec.claimRef?.uid !== claim.metadata.uid) return NOTHING;
  // The news that the guest has arrived, or stays, comes to us as the annotation goes.
  if (volume.metadata.annotations?.[INCOMING_NODE_ANNOTATION] !== undefined) return NOTHING;
  const wanted = claim.spec.resources?.requests?.['storage'] ?? 0;
  const larger = isLess(volume.spec.capacity['storage'], wanted);
  if (larger && storageClass?.allowVolumeExpansion !== true) {
    const message = `StorageClass "${claim.spec.storageClassName ?? ''}" does not allow volumes to grow`;
    return { changes: [], events: [{ type: 'Warning', reason: 'VolumeResizeFailed', message }] };
  }
  const size = larger ? wanted : (volume.spec.capacity['storage'] ?? 0);
  const changes = larger ? [resized(volume, size)] : [];
  return { changes: [...changes, ...tellSize(world, size)] };
}

function resized({ metadata }: Stored<PersistentVolume>, storage: string | number): Change {
  const patch = { type: 'merge' as const, body: { spec: { capacity: { storage } } } };
  const { name, uid } = metadata;
  return { do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why: 'its claim asks for more' };
}

/** Without a consumer nobody sees the file grow: it does at the next start, before the guest runs. */
function tellSize({ claim, consumerNode, now }: ClaimWorld, size: string | number): Change[] {
  const { status, metadata } = claim;
  const behind = isLess(status?.capacity?.['storage'], size);
  const pending = findCondition(status?.conditions, RESIZE_PENDING);
  if (behind && consumerNode !== undefined) {
    if (pending?.status === 'True') return [];
    const message = 'Waiting for the node of its pod to grow the volume.';
    const condition = { type: RESIZE_PENDING, status: 'True' as const, message };
    const conditions = setCondition(status?.conditions, condition, now);
    return [told(metadata, { conditions }, 'its volume has to grow on the node', 'FileSystemResizeRequired')];
  }
  if (!behind && pending === undefined) return [];
  const conditions = (status?.conditions ?? []).filter(({ type }) => type !== RESIZE_PENDING);
  const capacity = behind ? { capacity: { storage: size } } : {};
  return [told(metadata, { ...capacity, conditions }, 'its volume has grown', 'VolumeResizeSuccessful')];
}

function told(
  { namespace, name, uid }: ClaimWorld['claim']['metadata'],
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
