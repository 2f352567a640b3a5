/**
 * Marks on VolumeSnapshots that a restore needs. A policy (operator/objects/snapshot-policies.ts) refuses to delete a
 * marked snapshot, and lets only the restore controller write the marks: a finalizer would not do, because snapshotters
 * remove the data of a snapshot as soon as it is being deleted. Pure.
 */
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

/** The beginning of the annotation; the uid of the restore follows, and the value is the name of the restore. */
export const NEEDED_BY_RESTORE_PREFIX = 'needed-by-restore.selfsame.io/';

/**
 * On VolumeSnapshots from which a restore replaces a disk of an existing VM: the name of the claim. It stays until the new
 * disk has its data, also if the restore object is gone, because no other copy may exist.
 */
export const ONLY_COPY_ANNOTATION = 'selfsame.io/only-copy-of';

export function onlyCopyOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[ONLY_COPY_ANNOTATION];
}

export function neededByAnnotation({ metadata }: Stored<VirtualMachineRestore>): string {
  return `${NEEDED_BY_RESTORE_PREFIX}${metadata.uid}`;
}

interface NeedingRestore {
  readonly name: string;
  readonly uid: string;
}

/** Returns the restores whose marks the VolumeSnapshot has. */
export function listNeedingRestores({ metadata }: KubeObject): NeedingRestore[] {
  return Object.entries(metadata.annotations ?? {})
    .filter(([key]) => key.startsWith(NEEDED_BY_RESTORE_PREFIX))
    .map(([key, name]) => ({ name, uid: key.slice(NEEDED_BY_RESTORE_PREFIX.length) }));
}
