/**
 * Decides which snapshot or restore holds a VM: one at a time, until it is finished. The holder is written to the
 * status of the VM before it begins; meanwhile the VM does not start. controllers/snapshot and controllers/restore do
 * the work. Pure.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { isMigrating } from '#api/migration/migration-state.ts';
import { VM_RESTORE_FINALIZER, VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import { type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface VmLock {
  readonly kind: 'snapshot' | 'restore';
  readonly name: string;
}

interface UnfinishedWork {
  readonly snapshots: readonly Stored<VirtualMachineSnapshot>[];
  readonly restores: readonly Stored<VirtualMachineRestore>[];
}

interface Candidate {
  readonly object: Stored;
  readonly lock: VmLock;
  readonly holds: boolean;
}

/**
 * Returns the current holder until it is finished or gone, then the oldest that waits. `vmi` is the instance of the VM.
 */
export function lockOf(
  vm: Stored<VirtualMachine>,
  { snapshots, restores }: UnfinishedWork,
  vmi?: VirtualMachineInstance,
): VmLock | undefined {
  const { snapshotInProgress, restoreInProgress } = vm.status ?? {};
  const candidates: Candidate[] = [
    ...snapshots.map((object) => toCandidate('snapshot', object, snapshotInProgress)),
    ...restores.map((object) => toCandidate('restore', object, restoreInProgress)),
  ];
  const holder = candidates.find(({ holds }) => holds);
  if (holder !== undefined) return holder.lock;
  // No work begins on a VM under deletion: a restore waits until it is gone and creates another one.
  if (isDeleting(vm)) return undefined;
  // No work begins while disks and state are being moved to another node.
  if (isMigrating(vmi?.status?.migrationState)) return undefined;
  return candidates.filter(({ object }) => !isDeleting(object)).toSorted(byAge)[0]?.lock;
}

const FINALIZERS = { snapshot: VM_SNAPSHOT_FINALIZER, restore: VM_RESTORE_FINALIZER } as const;

/** A snapshot or restore under deletion keeps its hold until its controller has cleaned up. */
function toCandidate(kind: VmLock['kind'], object: Stored, holder: string | undefined): Candidate {
  const { name, finalizers } = object.metadata;
  const isEffective = !isDeleting(object) || finalizers?.includes(FINALIZERS[kind]) === true;
  return { object, lock: { kind, name }, holds: name === holder && isEffective };
}

function byAge({ object: a }: Candidate, { object: b }: Candidate): number {
  const [x, y] = [a.metadata, b.metadata];
  return compareText(x.creationTimestamp, y.creationTimestamp) || compareText(x.name, y.name);
}
