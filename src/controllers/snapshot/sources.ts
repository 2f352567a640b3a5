/** Whose changes make which snapshots and contents be looked at. Everything is found by an index; nothing is scanned. */
import { isMigrating } from '#api/migration-state.ts';
import { isRestoreFinished, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVm } from '#controllers/claim-keys.ts';
import { stateIndexKey } from '#controllers/persistent-state/claims-by-state.ts';
import { UNFINISHED_BY_VM } from '#controllers/vm/lock.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { source, type Source } from '#runtime/controller.ts';

// The informers are shared: these names are of this controller alone.
/** VMs that are held for a snapshot, by the key of each claim that they name. */
export const HELD_BY_CLAIM = 'held-for-snapshot-claim';
/** The same, by what the claim of its state is found by (stateIndexKey). */
export const HELD_BY_STATE = 'held-for-snapshot-state';
/** Restores that are not finished, by the key of their snapshot. */
export const UNFINISHED_BY_SNAPSHOT = 'content-need';
/** Contents, by the key of their snapshot. */
export const CONTENT_BY_SNAPSHOT = 'content-by-snapshot';

/** Snapshots that are being taken, by the word itself. */
export const BEING_TAKEN = 'snapshots-being-taken';
/** Contents that are not ready to use, by the word itself. */
export const UNREADY = 'unready-contents';
/** The same, by the name of each PersistentVolume that they hold a copy of. */
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

export function restoredSnapshotKeysOf(restore: Stored<VirtualMachineRestore>): string[] {
  if (isRestoreFinished(restore)) return [];
  return [keyOf({ namespace: restore.metadata.namespace, name: restore.spec.virtualMachineSnapshotName })];
}

export function snapshotKeysOf({ metadata, spec }: Stored<VirtualMachineSnapshotContent>): string[] {
  const { virtualMachineSnapshotName: name } = spec;
  return name ? [keyOf({ namespace: metadata.namespace, name })] : [];
}

/** VMs report all the time; only which one is there, what it asks for and for whom it is held makes a difference. */
export function vmSource(vms: Informer<VirtualMachine>, snapshots: Informer<VirtualMachineSnapshot>): Source {
  return ofUnfinished(vms, snapshots, ({ metadata, status }) =>
    [metadata.generation, status?.snapshotInProgress].join(' '),
  );
}

/** Of an instance, which has the name of its VM, only how far it is, whether it moves and which devices it has. */
export function vmiSource(vmis: Informer<VirtualMachineInstance>, snapshots: Informer<VirtualMachineSnapshot>): Source {
  return ofUnfinished(vmis, snapshots, ({ metadata, status }) =>
    [
      metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'deleting',
      isMigrating(status?.migrationState),
      status?.deviceHash,
    ].join(' '),
  );
}

/** Of a record, which has the name of its VM, only which devices it has. */
export function recordSource(
  records: Informer<VirtualMachineIdentity>,
  snapshots: Informer<VirtualMachineSnapshot>,
): Source {
  return ofUnfinished(records, snapshots, ({ status }) => status?.deviceHash ?? '');
}

function ofUnfinished<T extends KubeObject>(
  informer: Informer<T>,
  snapshots: Informer<VirtualMachineSnapshot>,
  gist: (object: Stored<T>) => string,
): Source {
  const told = (object: Stored<T> | undefined) =>
    object === undefined ? undefined : `${object.metadata.uid} ${gist(object)}`;
  return {
    cache: informer,
    subscribe: (add) =>
      informer.onChange((key, change) => {
        if (told(change.old) === told(change.new)) return;
        for (const snapshot of snapshots.byIndex(UNFINISHED_BY_VM, key)) add(objectKey(snapshot));
      }),
  };
}

/** A claim matters to the snapshot for which a VM that names it, or has its state in it, is held. */
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
