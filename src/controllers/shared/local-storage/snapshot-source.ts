/**
 * The origin of a claim's data: none, or a VolumeSnapshot of our driver. Pure.
 *
 *   waiting: the snapshot is not complete ──► ready, or refused until something changes
 */
import { LOCAL_DRIVER } from '#api/names.ts';
import { parseSnapshotHandle, type SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { isRecord, type Stored } from '#kube/meta.ts';
import { compareQuantities, formatQuantity, parseQuantity, type Quantity } from '#kube/quantity.ts';
import {
  SOURCE_SNAPSHOT_FINALIZER,
  VOLUME_SNAPSHOT_GROUP,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '#kube/volume-snapshot-kinds.ts';

type Claim = Stored<PersistentVolumeClaim>;

/** Index of claims by the key of their source VolumeSnapshot. */
export const CLAIMS_BY_SOURCE = 'source-snapshot';

const NANOS = 10n ** 9n;

/** The source objects of a claim, as far as they exist. */
export interface SnapshotSource {
  readonly snapshot?: Stored<VolumeSnapshot>;
  /** The content to which the VolumeSnapshot is bound. */
  readonly content?: Stored<VolumeSnapshotContent>;
}

export type DataOrigin =
  | { readonly is: 'empty' | 'waiting' }
  | { readonly is: 'refused'; readonly why: string }
  | { readonly is: 'ready'; readonly handle: string; readonly place: SnapshotPlace };

/** Returns the key of the claim's source VolumeSnapshot; the keys of the index CLAIMS_BY_SOURCE. */
export function sourceSnapshotKeys(claim: Claim): string[] {
  const { namespace } = claim.metadata;
  const name = sourceSnapshotName(claim);
  return name === undefined ? [] : [keyOf({ namespace, name })];
}

/** Reports whether a claim without a volume has the VolumeSnapshot as its source. `claims` has the index CLAIMS_BY_SOURCE. */
export function isAwaited(claims: Informer<PersistentVolumeClaim>, snapshotKey: string): boolean {
  return claims
    .byIndex(CLAIMS_BY_SOURCE, snapshotKey)
    .some((claim) => !claim.spec.volumeName && claim.metadata.deletionTimestamp === undefined);
}

/** Returns the key of the VolumeSnapshot to which the content refers. */
export function volumeSnapshotKeysOf({ spec }: VolumeSnapshotContent): string[] {
  const { namespace, name } = spec.volumeSnapshotRef;
  return name === undefined ? [] : [keyOf({ namespace, name })];
}

/** Returns undefined for a claim without a source, or with an unsupported one. */
function sourceSnapshotName({ metadata, spec }: Claim): string | undefined {
  const source = spec.dataSourceRef ?? spec.dataSource;
  if (!isRecord(source) || source['apiGroup'] !== VOLUME_SNAPSHOT_GROUP || source['kind'] !== 'VolumeSnapshot') {
    return undefined;
  }
  const { name, namespace = metadata.namespace } = source;
  return typeof name === 'string' && namespace === metadata.namespace ? name : undefined;
}

export function dataOriginOf(claim: Claim, source: SnapshotSource): DataOrigin {
  const { dataSource, dataSourceRef } = claim.spec;
  if (dataSource === undefined && dataSourceRef === undefined) return { is: 'empty' };
  const name = sourceSnapshotName(claim);
  if (name === undefined)
    return refused(`claim.spec.dataSource ${describeSource(claim)} is not supported; only VolumeSnapshots are`);
  const { snapshot, content } = source;
  if (snapshot === undefined) return refused(`VolumeSnapshot ${JSON.stringify(name)} not found`);
  const { deletionTimestamp, finalizers = [] } = snapshot.metadata;
  // The finalizer keeps the data for claims that existed before the deletion; for later ones it may be removed any
  // time.
  if (deletionTimestamp !== undefined && !finalizers.includes(SOURCE_SNAPSHOT_FINALIZER)) return beingDeleted(name);
  if (snapshot.status?.readyToUse !== true || content === undefined) return { is: 'waiting' };
  if (content.spec.driver !== LOCAL_DRIVER || !refersTo(content, snapshot)) {
    const named = JSON.stringify(content.metadata.name);
    return refused(`VolumeSnapshotContent ${named} does not belong to VolumeSnapshot ${JSON.stringify(name)}`);
  }
  if (content.metadata.deletionTimestamp !== undefined) return beingDeleted(name);
  const { readyToUse, snapshotHandle } = content.status ?? {};
  if (readyToUse !== true || snapshotHandle === undefined) return { is: 'waiting' };
  const place = parseSnapshotHandle(snapshotHandle);
  if (place === undefined) return refused(`VolumeSnapshot ${JSON.stringify(name)} has no handle of ${LOCAL_DRIVER}`);
  const why = checkFit(claim, name, content);
  return why === undefined ? { is: 'ready', handle: snapshotHandle, place } : refused(why);
}

export function refersTo({ spec }: VolumeSnapshotContent, { metadata }: Stored<VolumeSnapshot>): boolean {
  const { namespace, name, uid } = spec.volumeSnapshotRef;
  return namespace === metadata.namespace && name === metadata.name && uid === metadata.uid;
}

export function bytesQuantity(bytes: number): Quantity {
  return { nanos: BigInt(Math.ceil(bytes)) * NANOS, format: 'BinarySI' };
}

function checkFit({ spec }: Claim, name: string, content: VolumeSnapshotContent): string | undefined {
  const quoted = JSON.stringify(name);
  const requested = parseQuantity(String(spec.resources?.requests?.['storage'] ?? 0));
  const needed = bytesQuantity(content.status?.restoreSize ?? 0);
  if (compareQuantities(requested, needed) < 0) {
    const [is, least] = [formatQuantity(requested), formatQuantity(needed)];
    return `requested volume size ${is} is less than the size ${least} for the source snapshot ${quoted}`;
  }
  const { sourceVolumeMode } = content.spec;
  const mode = spec.volumeMode ?? 'Filesystem';
  if (sourceVolumeMode === undefined || sourceVolumeMode === mode) return undefined;
  return `claim.spec.volumeMode is ${mode}, but VolumeSnapshot ${quoted} has the mode ${sourceVolumeMode}`;
}

function describeSource({ spec }: Claim): string {
  const source = spec.dataSourceRef ?? spec.dataSource;
  const { apiGroup, kind, name, namespace } = isRecord(source) ? source : {};
  const words = [apiGroup, kind, namespace, name].filter((word) => typeof word === 'string' && word !== '');
  return JSON.stringify(words.join('/'));
}

function beingDeleted(name: string): DataOrigin {
  return refused(`VolumeSnapshot ${JSON.stringify(name)} is currently being deleted`);
}

function refused(why: string): DataOrigin {
  return { is: 'refused', why };
}
