/** Sources that trigger reconciles of snapshots and contents. All lookups use indexes. */
import { isMigrating } from '#api/migration/migration-state.ts';
import { isRestoreFinished, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVm } from '#controllers/shared/indexes/claim-keys.ts';
import { stateIndexKey } from '#controllers/shared/persistent-state/claims-by-state.ts';
import { UNFINISHED_BY_VM } from '#controllers/shared/indexes/unfinished-by-vm.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { source, type Source } from '#runtime/controller.ts';

// The informers are shared with other controllers, so the names of the indexes must be unique.
/** Index of VMs that are held for a snapshot, by the keys of their claims. */
export const HELD_BY_CLAIM = 'held-for-snapshot-claim';
/** Index of VMs that are held for a snapshot, by stateIndexKey. */
export const HELD_BY_STATE = 'held-for-snapshot-state';
/** Index of unfinished restores by the key of their snapshot. */
export const UNFINISHED_BY_SNAPSHOT = 'content-need';
/** Index of contents by the key of their snapshot. */
export const CONTENT_BY_SNAPSHOT = 'content-by-snapshot';
/** Index of contents by the keys of their VolumeSnapshots. */
export const CONTENT_BY_COPY = 'content-by-copy';

/** Index of snapshots in progress. All have the same key: the name of the index. */
export const IN_PROGRESS = 'snapshots-being-taken';
/** Index of contents that are not ready. All have the same key: the name of the index. */
export const UNREADY = 'unready-contents';
/** Index of contents that are not ready, by the names of the PersistentVolumes that they copy. */
export const UNREADY_BY_VOLUME = 'unready-contents-by-volume';

export function unreadyVolumesOf({ spec, status }: Stored<VirtualMachineSnapshotContent>): string[] {
  if (status?.readyToUse === true) return [];
  return (spec.volumeBackups ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim.spec.volumeName ?? []);
}

export function heldClaimKeysOf(vm: Stored<VirtualMachine>): string[] {
  return vm.status?.snapshotInProgress ? claimKeysOfVm(vm) : [];
}

export function heldStateKeysOf(vm: Stored<VirtualMachine>): string[] {
  return vm.status?.snapshotInProgress ? [stateIndexKey(vm.metadata)] : [];
}

export function snapshotKeysOfRestore(restore: Stored<VirtualMachineRestore>): string[] {
  if (isRestoreFinished(restore)) return [];
  return [keyOf({ namespace: restore.metadata.namespace, name: restore.spec.virtualMachineSnapshotName })];
}

export function snapshotKeysOfContent({ metadata, spec }: Stored<VirtualMachineSnapshotContent>): string[] {
  const { virtualMachineSnapshotName: name } = spec;
  return name ? [keyOf({ namespace: metadata.namespace, name })] : [];
}

/** Watches VMs for a new uid, a new generation and a change of the holder; other changes of the status are ignored. */
export function vmChangeSource(vms: Informer<VirtualMachine>, snapshots: Informer<VirtualMachineSnapshot>): Source {
  return fingerprintSource(vms, snapshots, ({ metadata, status }) =>
    [metadata.generation, status?.snapshotInProgress].join(' '),
  );
}

/** Watches instances, which have the name of their VM, for changes of the phase, the migration and the devices. */
export function vmiChangeSource(
  vmis: Informer<VirtualMachineInstance>,
  snapshots: Informer<VirtualMachineSnapshot>,
): Source {
  return fingerprintSource(vmis, snapshots, ({ metadata, status }) =>
    [
      metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'deleting',
      isMigrating(status?.migrationState),
      status?.deviceHash,
    ].join(' '),
  );
}

/** Watches identity records, which have the name of their VM, for changes of the devices. */
export function recordChangeSource(
  records: Informer<VirtualMachineIdentity>,
  snapshots: Informer<VirtualMachineSnapshot>,
): Source {
  return fingerprintSource(records, snapshots, ({ status }) => status?.deviceHash ?? '');
}

function fingerprintSource<T extends KubeObject>(
  informer: Informer<T>,
  snapshots: Informer<VirtualMachineSnapshot>,
  fingerprintOf: (object: Stored<T>) => string,
): Source {
  const fingerprint = (object: Stored<T> | undefined) =>
    object === undefined ? undefined : `${object.metadata.uid} ${fingerprintOf(object)}`;
  return {
    cache: informer,
    subscribe: (add) =>
      informer.onChange((key, change) => {
        if (fingerprint(change.old) === fingerprint(change.new)) return;
        for (const snapshot of snapshots.byIndex(UNFINISHED_BY_VM, key)) add(objectKey(snapshot));
      }),
  };
}

/** Triggers the snapshots whose held VMs use the claim as a disk or for their state. */
export function claimSource<T extends KubeObject>(
  informer: Informer<T>,
  vms: Informer<VirtualMachine>,
  claimKeysOf: (object: Stored<T>) => string[],
  index = HELD_BY_CLAIM,
): Source {
  return source(informer, (object) => {
    const held = claimKeysOf(object).flatMap((key) => vms.byIndex(index, key));
    return held.flatMap(({ metadata: { namespace }, status }) => {
      const name = status?.snapshotInProgress;
      return name ? [keyOf({ namespace, name })] : [];
    });
  });
}

/** Returns the keys of the VolumeSnapshots of the content. */
export function copyKeysOfContent({ metadata: { namespace }, spec }: Stored<VirtualMachineSnapshotContent>): string[] {
  return (spec.volumeBackups ?? []).flatMap(({ volumeSnapshotName: name }) =>
    name === undefined ? [] : [keyOf({ namespace, name })],
  );
}
