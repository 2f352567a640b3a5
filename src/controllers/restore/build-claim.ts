/** Builds the claims into which the disks of a snapshot are restored, and their names. Pure. */
import { createHash } from 'node:crypto';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { LAST_RESTORE_ANNOTATION, RESTORE_NAME_ANNOTATION, RESTORED_BY_ANNOTATION } from '#api/names.ts';
import {
  type RestoreStatus,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { REPLACED_BY_ANNOTATION } from '#api/storage/persistent-state.ts';
import type { VirtualMachineSnapshotContent, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import { restoreMark, type RestoredVolume } from '#controllers/restore/restore-world.ts';
import { isStateClaim, markForTarget, stateClaimNameFor } from '#controllers/restore/restored-state.ts';
import { isStateBackup } from '#controllers/shared/persistent-state/state-backup.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf, type OwnerReference, type Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity } from '#kube/quantity.ts';
import { VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';

type Restore = Stored<VirtualMachineRestore>;

const MAX_NAME = 253;
const HASH_LENGTH = 8;
/** Matches annotations in which the cluster describes the volume of the old claim. */
const CLUSTER_ANNOTATION = /^(pv\.kubernetes\.io|volume(\.beta)?\.kubernetes\.io)\//;
/** Matches annotations of which our own accounts decide: neither a snapshot nor a user may set them on a new claim. */
const RESERVED: ReadonlySet<string> = new Set([
  PROTECTED_VMS_ANNOTATION,
  REPLACED_BY_ANNOTATION,
  RESTORED_BY_ANNOTATION,
]);
const isReserved = (key: string) => RESERVED.has(key);
const describesOldClaim = (key: string) => CLUSTER_ANNOTATION.test(key) || isReserved(key);

/** Returns status.restores. Disks that are not in the snapshot are left unchanged, and state that is omitted. */
export function planRestores(
  restore: Restore,
  { spec }: VirtualMachineSnapshotContent,
): NonNullable<RestoreStatus['restores']> {
  return (spec.volumeBackups ?? []).flatMap((backup) => {
    const { volumeName, volumeSnapshotName } = backup;
    if (volumeSnapshotName === undefined) return [];
    const isState = isStateBackup(spec, backup);
    if (isState && restore.spec.persistentStatePolicy === 'Omit') return [];
    const claimName = isState ? stateClaimNameFor(restore) : restoredClaimName(restore, backup);
    return [{ volumeName, persistentVolumeClaim: claimName, volumeSnapshotName }];
  });
}

/** Reports whether the restored claim replaces an existing claim of the same name. */
export function replacesClaim(
  restore: Restore,
  { volumeName, claimName }: Pick<RestoredVolume, 'volumeName' | 'claimName'>,
): boolean {
  return isInPlace(restore, volumeName) && !isStateClaim(restore, claimName);
}

function isInPlace(restore: Restore, volumeName: string): boolean {
  return restore.spec.volumeRestorePolicy === 'InPlace' && !overrideOf(restore, volumeName)?.restoreName;
}

function restoredClaimName(restore: Restore, { volumeName, persistentVolumeClaim }: VolumeBackup): string {
  const { spec, metadata } = restore;
  const override = overrideOf(restore, volumeName)?.restoreName;
  if (override) return override;
  if (isInPlace(restore, volumeName)) return persistentVolumeClaim.metadata.name ?? '';
  const prefix = spec.volumeRestorePolicy === 'PrefixTargetName' ? spec.target.name : `restore-${metadata.uid}`;
  return limitLength(`${prefix}-${volumeName}`);
}

function limitLength(name: string): string {
  if (name.length <= MAX_NAME) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH);
  return `${name.slice(0, MAX_NAME - HASH_LENGTH - 1).replace(/[-.]+$/, '')}-${hash}`;
}

function overrideOf({ spec }: Restore, volumeName: string) {
  return spec.volumeRestoreOverrides?.find((override) => override.volumeName === volumeName);
}

export function buildRestoredClaim(
  restore: Restore,
  backup: VolumeBackup,
  view: RestoredVolume,
): PersistentVolumeClaim {
  const claim = buildFromBackup(restore, backup, view);
  return isStateClaim(restore, view.claimName) ? markForTarget(restore, claim) : claim;
}

function buildFromBackup(restore: Restore, backup: VolumeBackup, view: RestoredVolume): PersistentVolumeClaim {
  const { metadata, spec } = backup.persistentVolumeClaim;
  const { volumeName: _volume, dataSource: _source, dataSourceRef: _reference, ...kept } = spec;
  const override = overrideOf(restore, view.volumeName);
  const labels = { ...metadata.labels, ...override?.labels };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: view.claimName,
      namespace: restore.metadata.namespace,
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      annotations: {
        ...withoutOldClaim(metadata.annotations),
        ...Object.fromEntries(Object.entries(override?.annotations ?? {}).filter(([key]) => !isReserved(key))),
        [RESTORE_NAME_ANNOTATION]: restore.metadata.name,
        [LAST_RESTORE_ANNOTATION]: restoreMark(restore),
        [RESTORED_BY_ANNOTATION]: restore.metadata.uid,
      },
      ownerReferences: [restoreOwnerReference(restore, { controller: true })],
    },
    spec: {
      ...kept,
      resources: { ...kept.resources, requests: { ...kept.resources?.requests, ...sizeOf(backup, view) } },
      dataSource: { apiGroup: VOLUME_SNAPSHOT_GROUP, kind: 'VolumeSnapshot', name: view.snapshotName },
    },
  };
}

/**
 * Returns the size to request: at least that of the snapshot, as a disk may have grown beyond the request of its claim.
 */
function sizeOf({ persistentVolumeClaim }: VolumeBackup, { snapshot }: RestoredVolume): { storage?: string | number } {
  const requested = persistentVolumeClaim.spec.resources?.requests?.['storage'];
  const needed = snapshot?.status?.restoreSize;
  if (needed === undefined) return requested === undefined ? {} : { storage: requested };
  const fits =
    requested !== undefined && compareQuantities(parseQuantity(String(requested)), parseQuantity(String(needed))) >= 0;
  return { storage: fits ? requested : needed };
}

function withoutOldClaim(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !describesOldClaim(key)));
}

export function restoreOwnerReference({ metadata }: Restore, { controller }: { controller: boolean }): OwnerReference {
  const { name, uid } = metadata;
  const { kind } = VIRTUAL_MACHINE_RESTORES;
  const reference = { apiVersion: apiVersionOf(VIRTUAL_MACHINE_RESTORES), kind, name, uid };
  return controller ? { ...reference, controller: true, blockOwnerDeletion: true } : reference;
}
