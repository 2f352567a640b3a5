/** The claims into which the disks of a snapshot are restored: their names, and what they are. Pure. */
import { createHash } from 'node:crypto';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { LAST_RESTORE_ANNOTATION } from '#api/names.ts';
import {
  type RestoreStatus,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshotContent, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import { markOf, RESTORE_NAME_ANNOTATION, type VolumeView } from '#controllers/restore/restore-world.ts';
import { isStateClaim, markedForTarget, stateClaimNameFor } from '#controllers/restore/restored-state.ts';
import { isStateBackup } from '#controllers/snapshot/state-backup.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf, type OwnerReference, type Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity } from '#kube/quantity.ts';
import { VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';

type Restore = Stored<VirtualMachineRestore>;

const MAX_NAME = 253;
const HASH_LENGTH = 8;
/** What the cluster has written onto the claim about the volume that it had; and we, about the VMs whose disk it was. */
const CLUSTER_ANNOTATION = /^(pv\.kubernetes\.io|volume(\.beta)?\.kubernetes\.io)\//;
const isOfOldClaim = (key: string) => CLUSTER_ANNOTATION.test(key) || key === PROTECTED_VMS_ANNOTATION;

/** For status.restores. Disks that the snapshot does not hold are left as they are. */
export function plannedRestores(
  restore: Restore,
  { spec }: VirtualMachineSnapshotContent,
): NonNullable<RestoreStatus['restores']> {
  return (spec.volumeBackups ?? []).flatMap((backup) => {
    const { volumeName, volumeSnapshotName } = backup;
    if (volumeSnapshotName === undefined) return [];
    const claimName = isStateBackup(spec, backup) ? stateClaimNameFor(restore) : claimNameFor(restore, backup);
    return [{ volumeName, persistentVolumeClaim: claimName, volumeSnapshotName }];
  });
}

/** Whether the claim takes the place of the one that was there. */
export function replacesClaim(
  restore: Restore,
  { volumeName, claimName }: Pick<VolumeView, 'volumeName' | 'claimName'>,
): boolean {
  return isInPlace(restore, volumeName) && !isStateClaim(restore, claimName);
}

function isInPlace(restore: Restore, volumeName: string): boolean {
  return restore.spec.volumeRestorePolicy === 'InPlace' && !overrideOf(restore, volumeName)?.restoreName;
}

function claimNameFor(restore: Restore, { volumeName, persistentVolumeClaim }: VolumeBackup): string {
  const { spec, metadata } = restore;
  const given = overrideOf(restore, volumeName)?.restoreName;
  if (given) return given;
  if (isInPlace(restore, volumeName)) return persistentVolumeClaim.metadata.name ?? '';
  const prefix = spec.volumeRestorePolicy === 'PrefixTargetName' ? spec.target.name : `restore-${metadata.uid}`;
  return bounded(`${prefix}-${volumeName}`);
}

function bounded(name: string): string {
  if (name.length <= MAX_NAME) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH);
  return `${name.slice(0, MAX_NAME - HASH_LENGTH - 1).replace(/[-.]+$/, '')}-${hash}`;
}

function overrideOf({ spec }: Restore, volumeName: string) {
  return spec.volumeRestoreOverrides?.find((override) => override.volumeName === volumeName);
}

export function buildClaim(restore: Restore, backup: VolumeBackup, view: VolumeView): PersistentVolumeClaim {
  const claim = claimFrom(restore, backup, view);
  return isStateClaim(restore, view.claimName) ? markedForTarget(restore, claim) : claim;
}

function claimFrom(restore: Restore, backup: VolumeBackup, view: VolumeView): PersistentVolumeClaim {
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
        ...lasting(metadata.annotations),
        ...override?.annotations,
        [RESTORE_NAME_ANNOTATION]: restore.metadata.name,
        [LAST_RESTORE_ANNOTATION]: markOf(restore),
      },
      ownerReferences: [ownedByRestore(restore, { controller: true })],
    },
    spec: {
      ...kept,
      resources: { ...kept.resources, requests: { ...kept.resources?.requests, ...sizeOf(backup, view) } },
      dataSource: { apiGroup: VOLUME_SNAPSHOT_GROUP, kind: 'VolumeSnapshot', name: view.snapshotName },
    },
  };
}

/** A disk may have grown beyond what its claim asked for; what was in it must fit again. */
function sizeOf({ persistentVolumeClaim }: VolumeBackup, { snapshot }: VolumeView): { storage?: string | number } {
  const asked = persistentVolumeClaim.spec.resources?.requests?.['storage'];
  const needed = snapshot?.status?.restoreSize;
  if (needed === undefined) return asked === undefined ? {} : { storage: asked };
  const fits =
    asked !== undefined && compareQuantities(parseQuantity(String(asked)), parseQuantity(String(needed))) >= 0;
  return { storage: fits ? asked : needed };
}

function lasting(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !isOfOldClaim(key)));
}

export function ownedByRestore({ metadata }: Restore, { controller }: { controller: boolean }): OwnerReference {
  const { name, uid } = metadata;
  const { kind } = VIRTUAL_MACHINE_RESTORES;
  const reference = { apiVersion: apiVersionOf(VIRTUAL_MACHINE_RESTORES), kind, name, uid };
  return controller ? { ...reference, controller: true, blockOwnerDeletion: true } : reference;
}
