/** A disk is two things for QEMU: where its bytes are (blockdev), and what the guest sees (device). */
import type { Chipset } from '#api/chipset.ts';
import type { DiskDevice, DiskSource } from '#node/definition/domain-definition.ts';
import { fileNodeName, formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { ioThreadName } from '#node/hypervisor/qemu/arguments/machine.ts';
import { diskPlace, unitIn } from '#node/hypervisor/qemu/arguments/disk-place.ts';
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

/** The node of the format with that of the file in it: they come and go together. `filename` as QEMU is to open it. */
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

/** QEMU wants to be told. Files of volumes are never below /dev, but for those that lie in its shared memory. */
function isBlockDevice(path: string): boolean {
  return path.startsWith('/dev/') && !path.startsWith('/dev/shm/');
}

/** A full disk stops the guest with either: it can go on when there is room again. */
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
    // A LUN says itself who it is, a floppy nothing at all.
    ...(isOurs && serial !== undefined && { serial }),
    ...(media !== 'floppy' && bootOrder !== undefined && { bootindex: bootOrder }),
    ...(queues !== undefined && { 'num-queues': queues }),
    ...(ioThread !== undefined && { iothread: ioThreadName(ioThread) }),
    ...(errorPolicy !== undefined && ERROR_OPTIONS[errorPolicy]),
    ...(media === 'disk' && { 'write-cache': cache === 'writethrough' ? 'off' : 'on' }),
  };
}

/** The boot order of floppies is the controller's, which comes with the chipset. */
function floppyBootOrder(disk: DiskDevice): string[] {
  if (disk.media !== 'floppy' || disk.bootOrder === undefined) return [];
  const property = unitIn(disk) === 0 ? 'bootindexA' : 'bootindexB';
  return ['-global', optionText('', { driver: 'isa-fdc', property, value: disk.bootOrder })];
}
