/** Describes why an error of a disk has paused a guest, and how to continue. Pure. */
import { describeVolume } from '#api/storage/describe-volume.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { controllerOf } from '#kube/meta.ts';
import type { FailedDisk } from '#node/hypervisor/hypervisor.ts';

/** Returns the text without a sentence end. `disks` is undefined if the hypervisor has not named them. */
export function describeIoError(disks: readonly FailedDisk[] = [], vmi: VirtualMachineInstance, node: string): string {
  const unpause = `run "virtctl unpause ${unpauseTarget(vmi)}"`;
  if (disks.length === 0) {
    return `${node} could not read or write a disk of the guest, usually because its storage is full; free space or repair the storage, then ${unpause}`;
  }
  const isFull = disks.every(({ cause }) => cause === 'noSpace');
  const causes = disks.map(({ deviceId, cause }) => {
    const name = deviceId.replace(/^disk-/, '');
    const volume = vmi.spec.volumes?.find((one) => one.name === name);
    const why = cause === 'noSpace' ? `no space left on the storage of ${node}` : `${node} could not read or write it`;
    return `${describeVolume(name, volume)}: ${why}`;
  });
  const advice = isFull ? 'free space there' : 'repair the storage';
  return `${causes.join(', ')}; ${advice}, then ${unpause}`;
}

function unpauseTarget(vmi: VirtualMachineInstance): string {
  const owner = controllerOf(vmi);
  return owner?.kind === 'VirtualMachine' ? `vm ${owner.name}` : `vmi ${vmi.metadata.name ?? ''}`;
}
