/** Index functions: the contents of snapshots by the VM of which they were taken. Pure. */
import { vmOfContent } from '#api/virtual-machine-identity/record-state.ts';
import { uidsOf } from '#api/virtual-machine-identity/restored-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { Stored } from '#kube/meta.ts';

/** The name of an index of contents by contentVmUids. */
export const CONTENTS_BY_VM = 'source-vm-uid';

export function contentVmUids(content: VirtualMachineSnapshotContent): string[] {
  const { uid } = vmOfContent(content);
  return uid === undefined ? [] : [uid];
}

/** Returns the contents of the snapshots of a VM, and of the VM that it was restored from. */
export function contentsOf(
  contents: Pick<Informer<VirtualMachineSnapshotContent>, 'byIndex'>,
  vm: Stored<VirtualMachine>,
): Stored<VirtualMachineSnapshotContent>[] {
  return uidsOf(vm).flatMap((uid) => contents.byIndex(CONTENTS_BY_VM, uid));
}

/** Returns the key of the VM, which is also the key of its identity record. */
export function contentVmKeys(content: Stored<VirtualMachineSnapshotContent>): string[] {
  const { name } = vmOfContent(content);
  return name === undefined ? [] : [keyOf({ namespace: content.metadata.namespace, name })];
}
