/** Decides about a PersistentVolume on this node: when to remove its data or a leftover, and when it has grown. Pure. */
import { PROVISIONED_BY, VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import { isMigrating } from '#api/migration/migration-state.ts';
import {
  INCOMING_NODE_ANNOTATION,
  LEFTOVER_NODE_ANNOTATION,
  LOCAL_PROVISIONER,
  VOLUME_COPY_FINALIZER,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { type PersistentVolume, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity } from '#kube/quantity.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';

type VolumeAction =
  | { readonly do: 'removeData' }
  /** Removes a leftover as soon as no guest uses it, and then its annotation. */
  | { readonly do: 'removeLeftover' }
  /** Allows the deletion of the object. */
  | { readonly do: 'removeFinalizer' };

export function decideNodeVolume(volume: Stored<PersistentVolume>, node: string): readonly VolumeAction[] {
  const { metadata, spec, status } = volume;
  const { deletionTimestamp, finalizers = [], annotations = {} } = metadata;
  if (annotations[PROVISIONED_BY] !== LOCAL_PROVISIONER) return [];
  if (hasLeftover(volume, node)) return [{ do: 'removeLeftover' }];
  if (deletionTimestamp === undefined) return [];
  if (!finalizers.includes(VOLUME_DATA_FINALIZER)) return [];
  // The volume is still being filled.
  if (finalizers.includes(VOLUME_COPY_FINALIZER)) return [];
  // The volume was deleted while bound: its data stays until the claim is gone.
  if (finalizers.includes(VOLUME_PROTECTION) || status?.phase === 'Bound') return [];
  const dataNode = annotations[VOLUME_NODE_ANNOTATION];
  if (dataNode !== undefined && dataNode !== node) return [];
  // Without the object, the copy on the other node would be forgotten.
  if (isVolumeMoving(volume) || annotations[LEFTOVER_NODE_ANNOTATION] !== undefined) return [];
  // `Retain` keeps the data and deletes only the object.
  if (spec.persistentVolumeReclaimPolicy === 'Retain') return [{ do: 'removeFinalizer' }];
  return [{ do: 'removeData' }, { do: 'removeFinalizer' }];
}

/** Reports whether this node has a leftover of the volume. Never true if the node holds or may hold its data. */
export function hasLeftover({ metadata: { annotations = {} } }: PersistentVolume, node: string): boolean {
  const { [VOLUME_NODE_ANNOTATION]: dataNode, [INCOMING_NODE_ANNOTATION]: incoming } = annotations;
  if (annotations[LEFTOVER_NODE_ANNOTATION] !== node) return false;
  return dataNode !== undefined && dataNode !== node && incoming !== node;
}

/** Reports whether the volume is moving to another node. */
export function isVolumeMoving({ metadata }: PersistentVolume): boolean {
  return metadata.annotations?.[INCOMING_NODE_ANNOTATION] !== undefined;
}

/** Reports whether a disk of the guest is a file of the volume. Block devices cannot be recognized. */
export function usesVolume({ devices }: DomainDefinition, { spec }: PersistentVolume): boolean {
  const directory = `/volumes/${spec.csi?.volumeHandle ?? ''}/`;
  return devices.some((device) => device.type === 'disk' && device.source?.path.includes(directory) === true);
}

const FINISHED_STEPS: ReadonlySet<string> = new Set(['aborted', 'arrived']);

/** Reports whether the guest is migrating; its disks must not change then. */
export function isGuestMoving(domain: DomainInfo | undefined, vmi: VirtualMachineInstance | undefined): boolean {
  const { migration } = domain ?? {};
  return isMigrating(vmi?.status?.migrationState) || (migration !== undefined && !FINISHED_STEPS.has(migration.step));
}

/** Reports whether the volume is larger than the status of its claim says. */
export function hasGrown({ spec }: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const [capacity, reported] = [spec.capacity['storage'], claim.status?.capacity?.['storage']];
  if (capacity === undefined || reported === undefined) return false;
  return compareQuantities(parseQuantity(String(capacity)), parseQuantity(String(reported))) > 0;
}

const RESIZE_CONDITIONS: ReadonlySet<string> = new Set(['FileSystemResizePending', 'Resizing']);

/** Returns the status of the claim with the capacity of its volume, without resize conditions. */
export function grownClaimStatus(
  { spec }: PersistentVolume,
  { status }: PersistentVolumeClaim,
): NonNullable<PersistentVolumeClaim['status']> {
  const conditions = (status?.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.has(type));
  const capacity = { ...status?.capacity, storage: spec.capacity['storage']! };
  return { ...status, capacity, conditions };
}
