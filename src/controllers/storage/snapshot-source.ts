/**
 * What a claim is to be filled from: nothing, or a VolumeSnapshot of ours. Pure.
 *
 *   the VolumeSnapshot has no copy yet ──► waiting ──► ready, or refused: for people, until something changes
 */
import { LOCAL_DRIVER } from '#api/names.ts';
import { parseSnapshotHandle, type SnapshotPlace } from '#api/snapshot-handle.ts';
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

/** Claims by the key of the VolumeSnapshot that they are made from. */
export const CLAIMS_BY_SOURCE = 'source-snapshot';

const NANOS = 10n ** 9n;

/** The objects behind the name, as far as they are there. */
export interface SnapshotSource {
  readonly snapshot?: Stored<VolumeSnapshot>;
  /** The one that the VolumeSnapshot says it is bound to. */
  readonly content?: Stored<VolumeSnapshotContent>;
}

export type Origin =
  | { readonly is: 'empty' | 'waiting' }
  | { readonly is: 'refused'; readonly why: string }
  | { readonly is: 'ready'; readonly handle: string; readonly place: SnapshotPlace };

/** Also the keys under which CLAIMS_BY_SOURCE finds the claim. */
export function sourceSnapshotKeys(claim: Claim): string[] {
  const { namespace } = claim.metadata;
  const name = sourceSnapshotName(claim);
  return name === undefined ? [] : [keyOf({ namespace, name })];
}

/** The key of the VolumeSnapshot that the content is, or is to be, bound to. */
export function snapshotKeysOf({ spec }: VolumeSnapshotContent): string[] {
  const { namespace, name } = spec.volumeSnapshotRef;
  return name === undefined ? [] : [keyOf({ namespace, name })];
}

/** Undefined for a claim that is made from nothing, or from what we do not know. */
function sourceSnapshotName({ metadata, spec }: Claim): string | undefined {
  const source = spec.dataSourceRef ?? spec.dataSource;
  if (!isRecord(source) || source['apiGroup'] !== VOLUME_SNAPSHOT_GROUP || source['kind'] !== 'VolumeSnapshot') {
    return undefined;
  }
  const { name, namespace = metadata.namespace } = source;
  return typeof name === 'string' && namespace === metadata.namespace ? name : undefined;
}

export function originOf(claim: Claim, source: SnapshotSource): Origin {
  const { dataSource, dataSourceRef } = claim.spec;
  if (dataSource === undefined && dataSourceRef === undefined) return { is: 'empty' };
  const name = sourceSnapshotName(claim);
  if (name === undefined)
    return refused(`claim.spec.dataSource ${textOf(claim)} is not supported; only VolumeSnapshots`);
  const { snapshot, content } = source;
  if (snapshot === undefined) return refused(`VolumeSnapshot ${JSON.stringify(name)} not found`);
  const { deletionTimestamp, finalizers = [] } = snapshot.metadata;
  // Claims that were there before hold it by that finalizer; for others its data may be gone at any moment.
  if (deletionTimestamp !== undefined && !finalizers.includes(SOURCE_SNAPSHOT_FINALIZER)) return beingDeleted(name);
  if (snapshot.status?.readyToUse !== true || content === undefined) return { is: 'waiting' };
  if (content.spec.driver !== LOCAL_DRIVER || !refersTo(content, snapshot)) {
    const named = JSON.stringify(content.metadata.name);
    return refused(`VolumeSnapshotContent ${named} is not the one of VolumeSnapshot ${JSON.stringify(name)}`);
  }
  if (content.metadata.deletionTimestamp !== undefined) return beingDeleted(name);
  const { readyToUse, snapshotHandle } = content.status ?? {};
  if (readyToUse !== true || snapshotHandle === undefined) return { is: 'waiting' };
  const place = parseSnapshotHandle(snapshotHandle);
  if (place === undefined) return refused(`VolumeSnapshot ${JSON.stringify(name)} has no handle of ${LOCAL_DRIVER}`);
  const why = misfit(claim, name, content);
  return why === undefined ? { is: 'ready', handle: snapshotHandle, place } : refused(why);
}

export function refersTo({ spec }: VolumeSnapshotContent, { metadata }: Stored<VolumeSnapshot>): boolean {
  const { namespace, name, uid } = spec.volumeSnapshotRef;
  return namespace === metadata.namespace && name === metadata.name && uid === metadata.uid;
}

export function bytesQuantity(bytes: number): Quantity {
  return { nanos: BigInt(Math.ceil(bytes)) * NANOS, format: 'BinarySI' };
}

function misfit({ spec }: Claim, name: string, content: VolumeSnapshotContent): string | undefined {
  const quoted = JSON.stringify(name);
  const asked = parseQuantity(String(spec.resources?.requests?.['storage'] ?? 0));
  const needed = bytesQuantity(content.status?.restoreSize ?? 0);
  if (compareQuantities(asked, needed) < 0) {
    const [is, least] = [formatQuantity(asked), formatQuantity(needed)];
    return `requested volume size ${is} is less than the size ${least} for the source snapshot ${quoted}`;
  }
  const { sourceVolumeMode } = content.spec;
  const mode = spec.volumeMode ?? 'Filesystem';
  if (sourceVolumeMode === undefined || sourceVolumeMode === mode) return undefined;
  return `claim.spec.volumeMode is ${mode}, but VolumeSnapshot ${quoted} is of a volume of mode ${sourceVolumeMode}`;
}

function textOf({ spec }: Claim): string {
  const source = spec.dataSourceRef ?? spec.dataSource;
  const { apiGroup, kind, name, namespace } = isRecord(source) ? source : {};
  const words = [apiGroup, kind, namespace, name].filter((word) => typeof word === 'string' && word !== '');
  return JSON.stringify(words.join('/'));
}

function beingDeleted(name: string): Origin {
  return refused(`VolumeSnapshot ${JSON.stringify(name)} is currently being deleted`);
}

function refused(why: string): Origin {
  return { is: 'refused', why };
}
