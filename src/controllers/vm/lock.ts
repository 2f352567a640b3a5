/**
 * Who holds a VM: one snapshot or one restore at a time, until it is finished. It is told in the VM's status, and only
 * then they begin; meanwhile the VM starts nothing. What they do is theirs (controllers/snapshot, controllers/restore).
 * Pure.
 */
import { isMigrating } from '#api/migration-state.ts';
import { VM_RESTORE_FINALIZER, VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { hasRestoreBegun, isRestoreFinished, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { isSnapshotFinished, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { keyOf } from '#client/object-key.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface VmLock {
  readonly kind: 'snapshot' | 'restore';
  readonly name: string;
}

/** Unfinished snapshots, and restores that have begun, by the key of the VM that they name. */
export const UNFINISHED_BY_VM = 'unfinished-by-vm';

export function unfinishedSnapshotOf(snapshot: Stored<VirtualMachineSnapshot>): string[] {
  return isSnapshotFinished(snapshot) ? [] : vmKeys(snapshot, snapshot.spec.source);
}

/** One that has not begun waits for its snapshot, which may itself wait for the VM: it does not count yet. */
export function unfinishedRestoreOf(restore: Stored<VirtualMachineRestore>): string[] {
  return isRestoreFinished(restore) || !hasRestoreBegun(restore) ? [] : vmKeys(restore, restore.spec.target);
}

function vmKeys({ metadata }: Stored, { kind, name }: { readonly kind: string; readonly name: string }): string[] {
  return kind === VIRTUAL_MACHINES.kind ? [keyOf({ namespace: metadata.namespace, name })] : [];
}

export interface Unfinished {
  readonly snapshots: readonly Stored<VirtualMachineSnapshot>[];
  readonly restores: readonly Stored<VirtualMachineRestore>[];
}

interface Candidate {
  readonly object: Stored;
  readonly lock: VmLock;
  readonly holds: boolean;
}

/** The present holder, as long as it is there and not finished; then the oldest that waits. `vmi`: of the same name. */
export function lockOf(
  vm: Stored<VirtualMachine>,
  { snapshots, restores }: Unfinished,
  vmi?: VirtualMachineInstance,
): VmLock | undefined {
  const { snapshotInProgress, restoreInProgress } = vm.status ?? {};
  const candidates: Candidate[] = [
    ...snapshots.map((object) => candidate('snapshot', object, snapshotInProgress)),
    ...restores.map((object) => candidate('restore', object, restoreInProgress)),
  ];
  const holder = candidates.find(({ holds }) => holds);
  if (holder !== undefined) return holder.lock;
  // Nothing new begins with a VM that goes: a restore waits for the end of it, and makes another.
  if (isDeleting(vm)) return undefined;
  // Nor with one whose disks and state are on their way to another node.
  if (isMigrating(vmi?.status?.migrationState)) return undefined;
  return candidates.filter(({ object }) => !isDeleting(object)).toSorted(byAge)[0]?.lock;
}

const FINALIZERS = { snapshot: VM_SNAPSHOT_FINALIZER, restore: VM_RESTORE_FINALIZER } as const;

/** One that is being deleted holds the VM while its controller still cleans up. */
function candidate(kind: VmLock['kind'], object: Stored, holder: string | undefined): Candidate {
  const { name, finalizers } = object.metadata;
  const stays = !isDeleting(object) || finalizers?.includes(FINALIZERS[kind]) === true;
  return { object, lock: { kind, name }, holds: name === holder && stays };
}

function byAge({ object: a }: Candidate, { object: b }: Candidate): number {
  const [x, y] = [a.metadata, b.metadata];
  return compare(x.creationTimestamp, y.creationTimestamp) || compare(x.name, y.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
