/** Index functions: snapshots and restores that hold a VM or wait for it (vm/lock.ts), by the key of that VM. Pure. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { hasRestoreBegun, isRestoreFinished, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { isSnapshotFinished, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { keyOf } from '#client/object-key.ts';
import type { Stored } from '#kube/meta.ts';

/** The name of an index: unfinished snapshots, and restores that have begun, by the key of their VM. */
export const UNFINISHED_BY_VM = 'unfinished-by-vm';

export function vmKeysOfUnfinishedSnapshot(snapshot: Stored<VirtualMachineSnapshot>): string[] {
  return isSnapshotFinished(snapshot) ? [] : vmKeys(snapshot, snapshot.spec.source);
}

/** Ignores a restore that has not begun: it waits for its snapshot, which may itself wait for the VM. */
export function vmKeysOfUnfinishedRestore(restore: Stored<VirtualMachineRestore>): string[] {
  return isRestoreFinished(restore) || !hasRestoreBegun(restore) ? [] : vmKeys(restore, restore.spec.target);
}

function vmKeys({ metadata }: Stored, { kind, name }: { readonly kind: string; readonly name: string }): string[] {
  return kind === VIRTUAL_MACHINES.kind ? [keyOf({ namespace: metadata.namespace, name })] : [];
}
