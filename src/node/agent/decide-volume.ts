/**
 * What is to be done here for one PersistentVolume: its data go with it, a copy that its guest left behind goes, and it
 * grows with its capacity. Pure.
 */
import { PROVISIONED_BY, VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import { isMigrating } from '#api/migration-state.ts';
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
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';

export type VolumeAction =
  | { readonly do: 'removeData' }
  /** Of a copy that counts no more, as soon as no guest has it; then the note that says so. */
  | { readonly do: 'removeLeftover' }
  /** Lets the object go. */
  | { readonly do: 'dropFinalizer' };

export function decideVolume(volume: Stored<PersistentVolume>, node: string): readonly VolumeAction[] {
  const { metadata, spec, status } = volume;
  const { deletionTimestamp, finalizers = [], annotations = {} } = metadata;
  if (annotations[PROVISIONED_BY] !== LOCAL_PROVISIONER) return [];
  if (hasLeftover(volume, node)) return [{ do: 'removeLeftover' }];
  if (deletionTimestamp === undefined) return [];
  if (!finalizers.includes(VOLUME_DATA_FINALIZER)) return [];
  // Whoever fills it must have let go of it.
  if (finalizers.includes(VOLUME_COPY_FINALIZER)) return [];
  // Somebody deleted it under a claim: the data stay for as long as that is bound.
  if (finalizers.includes(VOLUME_PROTECTION) || status?.phase === 'Bound') return [];
  const home = annotations[VOLUME_NODE_ANNOTATION];
  if (home !== undefined && home !== node) return [];
  // When the object is gone nobody knows of the other copy any more.
  if (isOnTheMove(volume) || annotations[LEFTOVER_NODE_ANNOTATION] !== undefined) return [];
  // Who wants to retain the data gets rid of the object only.
  if (spec.persistentVolumeReclaimPolicy === 'Retain') return [{ do: 'dropFinalizer' }];
  return [{ do: 'removeData' }, { do: 'dropFinalizer' }];
}

/** Whether this node has a copy that counts no more. Never of a volume whose data it holds, or may hold. */
export function hasLeftover({ metadata: { annotations = {} } }: PersistentVolume, node: string): boolean {
  const { [VOLUME_NODE_ANNOTATION]: home, [INCOMING_NODE_ANNOTATION]: incoming } = annotations;
  if (annotations[LEFTOVER_NODE_ANNOTATION] !== node) return false;
  return home !== undefined && home !== node && incoming !== node;
}

/** Whether its guest takes it to another node. */
export function isOnTheMove({ metadata }: PersistentVolume): boolean {
  return metadata.annotations?.[INCOMING_NODE_ANNOTATION] !== undefined;
}

/** Whether the disk of a guest is a file of that volume. Block devices do not tell. */
export function standsOn({ devices }: DomainDefinition, { spec }: PersistentVolume): boolean {
  const directory = `/volumes/${spec.csi?.volumeHandle ?? ''}/`;
  return devices.some((device) => device.type === 'disk' && device.source?.path.includes(directory) === true);
}

const SETTLED: ReadonlySet<string> = new Set(['aborted', 'arrived']);

/** Whether the guest is on its way: its disks stay as they are meanwhile. */
export function isGuestMoving(domain: Domain | undefined, vmi: VirtualMachineInstance | undefined): boolean {
  const { migration } = domain ?? {};
  return isMigrating(vmi?.status?.migrationState) || (migration !== undefined && !SETTLED.has(migration.step));
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
