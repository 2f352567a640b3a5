/** What is to be done here for one PersistentVolume: its data go with it, and it grows with its capacity. Pure. */
import { PROVISIONED_BY, VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import { LOCAL_PROVISIONER, VOLUME_COPY_FINALIZER, VOLUME_DATA_FINALIZER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { type PersistentVolume, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity } from '#kube/quantity.ts';

export type VolumeAction =
  | { readonly do: 'removeData' }
  /** Lets the object go. */
  | { readonly do: 'dropFinalizer' };

export function decideVolume(volume: Stored<PersistentVolume>, node: string): readonly VolumeAction[] {
  const { metadata, spec, status } = volume;
  const { deletionTimestamp, finalizers = [], annotations = {} } = metadata;
  if (annotations[PROVISIONED_BY] !== LOCAL_PROVISIONER || deletionTimestamp === undefined) return [];
  if (!finalizers.includes(VOLUME_DATA_FINALIZER)) return [];
  // Whoever fills it must have let go of it.
  if (finalizers.includes(VOLUME_COPY_FINALIZER)) return [];
  // Somebody deleted it under a claim: the data stay for as long as that is bound.
  if (finalizers.includes(VOLUME_PROTECTION) || status?.phase === 'Bound') return [];
  const home = annotations[VOLUME_NODE_ANNOTATION];
  if (home !== undefined && home !== node) return [];
  // Who wants to retain the data gets rid of the object only.
  if (spec.persistentVolumeReclaimPolicy === 'Retain') return [{ do: 'dropFinalizer' }];
  return [{ do: 'removeData' }, { do: 'dropFinalizer' }];
}

/** Whether the claim has not been told yet of all the room that its volume has. */
export function hasGrown({ spec }: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const [capacity, told] = [spec.capacity['storage'], claim.status?.capacity?.['storage']];
  if (capacity === undefined || told === undefined) return false;
  return compareQuantities(parseQuantity(String(capacity)), parseQuantity(String(told))) > 0;
}

const RESIZE_CONDITIONS: ReadonlySet<string> = new Set(['FileSystemResizePending', 'Resizing']);

/** The status of a claim whose volume is as large as it says. */
export function grownClaimStatus(
  { spec }: PersistentVolume,
  { status }: PersistentVolumeClaim,
): NonNullable<PersistentVolumeClaim['status']> {
  const conditions = (status?.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.has(type));
  const capacity = { ...status?.capacity, storage: spec.capacity['storage']! };
  return { ...status, capacity, conditions };
}
