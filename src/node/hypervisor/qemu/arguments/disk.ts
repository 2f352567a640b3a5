/** Arguments of a disk. QEMU has two objects for it: its data (blockdev), and the device that the guest sees. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DiskDevice, DiskSource } from '#node/hardware/domain-definition.ts';
import { fileNodeName, formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { ioThreadName } from '#node/hypervisor/qemu/arguments/machine.ts';
import { diskPlace, driveUnit } from '#node/hypervisor/qemu/arguments/disk-place.ts';
import {
  blockdevArguments,
  deviceArguments,
  optionText,
  type DeviceOptions,
  type JsonOptions,
} from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

export function diskArguments(disk: DiskDevice, chipset: Chipset, host: QemuHost): string[] {
  const { source } = disk;
  return [
    ...(source === undefined ? [] : blockdevArguments(diskBlockdev(disk, source, host.pathOf(source.path)))),
    ...floppyBootOrder(disk),
    ...deviceArguments(diskDevice(disk, chipset)),
  ];
}

/**
 * Returns the format node with its file node inside, so that both are added and removed together. `filename` is the
 * path as QEMU opens it.
 */
export function diskBlockdev(
  { id, readonly, cache, media }: DiskDevice,
  source: DiskSource,
  filename: string,
): JsonOptions {
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
      driver: media === 'lun' || isBlockDevice(source.path) ? 'host_device' : 'file',
      'node-name': fileNodeName(id),
      filename,
      ...shared,
    },
  };
}

/** Reports whether the path is a block device, which needs another driver. Only /dev/shm has files below /dev. */
function isBlockDevice(path: string): boolean {
  return path.startsWith('/dev/') && !path.startsWith('/dev/shm/');
}

/** Both policies pause the guest when the disk is full, so that it can continue once there is space. */
const ERROR_OPTIONS = {
  report: { werror: 'enospc', rerror: 'report' },
  stop: { werror: 'stop', rerror: 'stop' },
} as const;

export function diskDevice(disk: DiskDevice, chipset: Chipset): DeviceOptions {
  const { id, source, media, serial, bootOrder, cache, queues, ioThread, errorPolicy } = disk;
  const isOurs = media === 'disk' || media === 'cdrom';
  return {
    ...diskPlace(disk, chipset),
    id,
    ...(source !== undefined && { drive: formatNodeName(id) }),
    // A LUN has its own serial number, a floppy has none.
    ...(isOurs && serial !== undefined && { serial }),
    ...(media !== 'floppy' && bootOrder !== undefined && { bootindex: bootOrder }),
    ...(queues !== undefined && { 'num-queues': queues }),
    ...(ioThread !== undefined && { iothread: ioThreadName(ioThread) }),
    ...(errorPolicy !== undefined && ERROR_OPTIONS[errorPolicy]),
    ...(media === 'disk' && { 'write-cache': cache === 'writethrough' ? 'off' : 'on' }),
  };
}

/** Sets the boot order of a floppy, which is a property of the chipset's controller. */
function floppyBootOrder(disk: DiskDevice): string[] {
  if (disk.media !== 'floppy' || disk.bootOrder === undefined) return [];
  const property = driveUnit(disk) === 0 ? 'bootindexA' : 'bootindexB';
  return ['-global', optionText('', { driver: 'isa-fdc', property, value: disk.bootOrder })];
}
