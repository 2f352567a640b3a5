/**
 * QEMU's objects for one disk or interface: its medium (two block nodes) or its network (netdev, tap device), and the
 * device itself. The options are those of the command line (arguments/).
 */
import type { DiskDevice, InterfaceDevice, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { diskBlockdev, diskDevice } from '#node/hypervisor/qemu/arguments/disk.ts';
import { interfaceDevice, interfaceNetdev, netdevName } from '#node/hypervisor/qemu/arguments/interface.ts';
import { requireChipset } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';
import { readBlockNodes } from '#node/hypervisor/qemu/disks/copy-jobs.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { QmpError, type QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import type { FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { addTap, removeTap, tapName } from '#node/hypervisor/qemu/process/tap.ts';

export interface DeviceParts {
  /** Adds everything, the device last. A failure may leave some parts behind. */
  add(qmp: QmpClient, device: PluggableDevice, machine: string): Promise<void>;
  /** Removes all parts that exist, except for the device, which is gone already. */
  clear(qmp: QmpClient, device: PluggableDevice): Promise<void>;
}

interface DevicePartsOptions {
  readonly domainId: string;
  readonly user: ProcessUser | undefined;
  readonly files: FileAccess;
}

export function deviceParts(options: DevicePartsOptions): DeviceParts {
  return {
    add: (qmp, device, machine) =>
      device.type === 'disk' ? addDisk(qmp, device, machine, options) : addInterface(qmp, device, machine, options),
    clear: (qmp, device) =>
      device.type === 'disk' ? clearDisk(qmp, device, options) : clearInterface(qmp, device, options),
  };
}

async function addDisk(
  qmp: QmpClient,
  disk: DiskDevice,
  machine: string,
  { files }: DevicePartsOptions,
): Promise<void> {
  const { id, source } = disk;
  if (source !== undefined) {
    const filename = await files.pathOf(formatNodeName(id), source.path, { isReadOnly: disk.readonly });
    await qmp.execute('blockdev-add', diskBlockdev(disk, source, filename));
    await files.release(formatNodeName(id));
  }
  await qmp.execute('device_add', diskDevice(disk, requireChipset({ machine })));
}

/** Removes the format node and, with it, its file node. */
async function clearDisk(qmp: QmpClient, { id }: DiskDevice, { files }: DevicePartsOptions): Promise<void> {
  const node = formatNodeName(id);
  if ((await readBlockNodes(qmp)).has(node)) await qmp.execute('blockdev-del', { 'node-name': node });
  await files.release(node);
}

async function addInterface(
  qmp: QmpClient,
  nic: InterfaceDevice,
  machine: string,
  { domainId, user }: DevicePartsOptions,
): Promise<void> {
  const tapOf = (deviceId: string) => tapName(domainId, deviceId);
  if (nic.backend.type === 'bridge')
    await addTap({ name: tapOf(nic.id), bridge: nic.backend.bridge, queues: nic.queues }, user);
  await qmp.execute('netdev_add', interfaceNetdev(nic, tapOf));
  await qmp.execute('device_add', interfaceDevice(nic, requireChipset({ machine })));
  if (nic.link === 'down') await setLink(qmp, nic.id, false);
}

/** Sets the link state that the guest sees, as if its cable were pulled or plugged in. */
export async function setLink(qmp: QmpClient, deviceId: string, up: boolean): Promise<void> {
  await qmp.execute('set_link', { name: deviceId, up });
}

async function clearInterface(qmp: QmpClient, nic: InterfaceDevice, { domainId }: DevicePartsOptions): Promise<void> {
  await qmp.execute('netdev_del', { id: netdevName(nic) }).catch((error: unknown) => {
    if (!(error instanceof QmpError && error.class === 'DeviceNotFound')) throw error;
  });
  if (nic.backend.type === 'bridge') await removeTap(tapName(domainId, nic.id));
}
