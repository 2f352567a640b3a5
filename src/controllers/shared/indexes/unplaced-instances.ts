/** The index of instances without a guest, which wait for what a launcher pod needs. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import type { Stored } from '#kube/meta.ts';

/** The name of an index: instances without a guest, by their namespace and by ''. */
const UNPLACED = 'vmi-unplaced';

export function indexUnplaced(vmis: Informer<VirtualMachineInstance>): void {
  vmis.addIndex(UNPLACED, (vmi) => (hasNoGuest(vmi) ? ['', vmi.metadata.namespace ?? ''] : []));
}

/** Returns the keys of the instances without a guest in a namespace, or in all if it is ''. */
export function unplacedKeysIn(vmis: Informer<VirtualMachineInstance>, namespace: string): string[] {
  return vmis.byIndex(UNPLACED, namespace).map(objectKey);
}

function hasNoGuest({ status }: Stored<VirtualMachineInstance>): boolean {
  return status?.phase === undefined || status.phase === 'Pending' || status.phase === 'Scheduling';
}
