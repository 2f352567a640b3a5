/** Finds out which disk of a guest QEMU could not open, and why. Pure. */
import { reportsDamage } from '#api/storage/image-damage.ts';
import type { Device } from '#node/hardware/domain-definition.ts';
import type { DiskProblem } from '#node/hypervisor/hypervisor.ts';
import { formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import type { RefusedOption } from '#node/hypervisor/qemu/process/process-log.ts';

const LOCKED = /Failed to get .*lock/;

/** Returns the problem if the option that QEMU refused is a disk, or the medium of one. */
export function findDiskProblem(
  { id, nodeName, why }: RefusedOption,
  devices: readonly Device[],
): DiskProblem | undefined {
  const disk = devices.find(
    (device) => device.type === 'disk' && (device.id === id || formatNodeName(device.id) === nodeName),
  );
  return disk === undefined ? undefined : diskProblemOf(disk, why);
}

/** Returns the problem if QEMU refused the device because of its medium. */
export function diskProblemOf(device: Device, why: string): DiskProblem | undefined {
  if (device.type !== 'disk') return undefined;
  if (LOCKED.test(why)) return { deviceId: device.id, is: 'inUse', detail: why };
  const isDamaged = device.source?.format === 'qcow2' && reportsDamage(why);
  return isDamaged ? { deviceId: device.id, is: 'damaged', detail: why } : undefined;
}
