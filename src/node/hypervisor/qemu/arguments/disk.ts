/** A disk is two things for QEMU: where its bytes are (blockdev), and what the guest sees (device). */
import { invariant, unreachable } from '#lib/invariant.ts';
import { unitOf } from '#node/definition/addresses/drive-address.ts';
import type { DiskDevice, DiskSource } from '#node/definition/domain-definition.ts';
import { fileNodeName, formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import {
  blockdevArguments,
  deviceArguments,
  type DeviceOptions,
  type JsonOptions,
} from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

export function diskArguments(disk: DiskDevice, host: QemuHost): string[] {
  const { source } = disk;
  return [
    ...(source === undefined ? [] : blockdevArguments(blockdevOf(disk, source, host))),
    ...deviceArguments(deviceOf(disk)),
  ];
}

function blockdevOf({ id, readonly, cache }: DiskDevice, source: DiskSource, host: QemuHost): JsonOptions {
  const shared = {
    'read-only': readonly,
    cache: { direct: cache === 'none', 'no-flush': false },
    discard: 'unmap',
  };
  return {
    driver: source.format,
    'node-name': formatNodeName(id),
    ...shared,
    file: {
      driver: isBlockDevice(source.path) ? 'host_device' : 'file',
      'node-name': fileNodeName(id),
      filename: host.pathOf(source.path),
      ...shared,
    },
  };
}

/** QEMU wants to be told. Files of volumes are never below /dev, but for those that lie in its shared memory. */
function isBlockDevice(path: string): boolean {
  return path.startsWith('/dev/') && !path.startsWith('/dev/shm/');
}

function deviceOf(disk: DiskDevice): DeviceOptions {
  const { id, source, media, serial, bootOrder, cache } = disk;
  return {
    ...controllerOf(disk),
    id,
    ...(source !== undefined && { drive: formatNodeName(id) }),
    ...(serial !== undefined && { serial }),
    ...(bootOrder !== undefined && { bootindex: bootOrder }),
    ...(media === 'disk' && { 'write-cache': cache === 'writethrough' ? 'off' : 'on' }),
  };
}

function controllerOf(disk: DiskDevice): DeviceOptions {
  switch (disk.bus) {
    case 'virtio':
      return { driver: 'virtio-blk-pci', ...pciPlace(disk) };
    case 'sata':
      return { driver: disk.media === 'cdrom' ? 'ide-cd' : 'ide-hd', bus: `ide.${unitIn(disk)}`, unit: 0 };
    case 'scsi': {
      const driver = disk.media === 'cdrom' ? 'scsi-cd' : 'scsi-hd';
      // Without a device_id, QEMU makes one up from how the disk was attached.
      const device_id = disk.serial ?? disk.id;
      return { driver, bus: 'scsi0.0', channel: 0, 'scsi-id': 0, lun: unitIn(disk), device_id };
    }
    default:
      return unreachable(disk.bus);
  }
}

function unitIn({ id, address }: DiskDevice): number {
  const unit = address && unitOf(address);
  invariant(unit !== undefined, `${id} has a drive address`);
  return unit;
}
