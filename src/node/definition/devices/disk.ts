/** Defines disks, CD-ROM and floppy drives and LUNs. volumes/ has prepared their media. */
import type { Disk, DiskCache } from '#api/domain/disk.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import { diskQueues } from '#node/definition/devices/fixtures.ts';
import { checkDeviceNames } from '#node/definition/devices/device-name.ts';
import { validateDisk } from '#node/definition/devices/validate-disk.ts';
import type { DiskDevice, DiskSource } from '#node/hardware/domain-definition.ts';

/** A volume that is prepared on this node. */
export interface Medium {
  readonly source: DiskSource;
  readonly readonly: boolean;
  /** False if its file system does not support direct I/O, which bypasses the page cache. */
  readonly cacheNone?: boolean;
}

const FIELD = 'spec.domain.devices.disks';

/** Defines the disks that are in the guest: not unplugged ones, and not optional ones without a medium. */
export function defineDisks(
  spec: VmiSpec,
  media: ReadonlyMap<string, Medium>,
  layout: Layout,
  problems: FieldError[],
): UnplacedDevice<DiskDevice>[] {
  const disks = spec.domain.devices?.disks ?? [];
  const names = disks.map(({ name }) => name);
  problems.push(...checkDeviceNames(names, FIELD));
  const queues = diskQueues(spec.domain);
  const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
  return disks.flatMap((disk, i) => {
    const medium = media.get(disk.name);
    const isMissing = medium === undefined && volumes.has(disk.name) && disk.optional === true;
    if (disk.plugged === false || isMissing) return [];
    const field = `${FIELD}[${i}]`;
    const unplaced = defineDisk(disk, field, medium, { layout, queues }, problems);
    const mayBeEmpty = isRemovableDrive(unplaced.device) && !volumes.has(disk.name);
    if (medium === undefined && !mayBeEmpty) {
      problems.push(invalidValue(`${field}.name`, disk.name, 'there is no volume of this name'));
    }
    return [unplaced];
  });
}

interface DiskContext {
  readonly layout: Layout;
  /** The number of queues of disks that support several. */
  readonly queues?: number | undefined;
}

/** Defines one disk with its medium; without one it is an empty drive. */
export function defineDisk(
  disk: Disk,
  field: string,
  medium: Medium | undefined,
  { layout, queues }: DiskContext,
  problems: FieldError[],
): UnplacedDevice<DiskDevice> {
  const plain = toDiskDevice(disk, medium, layout);
  const device = queues !== undefined && plain.bus === 'virtio' ? { ...plain, queues } : plain;
  problems.push(...validateDisk(disk, device, field, layout));
  return { device, field, pciAddress: disk.disk?.pciAddress };
}

/** Reports whether the drive can be present without a medium. */
const isRemovableDrive = ({ media }: DiskDevice) => media === 'cdrom' || media === 'floppy';

function toDiskDevice(disk: Disk, medium: Medium | undefined, layout: Layout): DiskDevice {
  const { name, serial, bootOrder } = disk;
  const kind = targetOf(disk, layout);
  return {
    type: 'disk',
    id: `disk-${name}`,
    name,
    media: kind.media,
    bus: kind.bus,
    ...(medium !== undefined && { source: medium.source }),
    readonly: kind.readonly || medium?.readonly === true,
    ...(serial !== undefined && serial !== '' && { serial }),
    cache: disk.cache ?? defaultCache(medium),
    ...(bootOrder !== undefined && { bootOrder }),
  };
}

function targetOf(
  { disk, cdrom, floppy, lun }: Disk,
  { cdromBus }: Layout,
): Pick<DiskDevice, 'media' | 'bus' | 'readonly'> {
  if (cdrom !== undefined) return { media: 'cdrom', bus: cdrom.bus ?? cdromBus, readonly: true };
  if (floppy !== undefined) return { media: 'floppy', bus: 'fdc', readonly: floppy.readonly === true };
  if (lun !== undefined) return { media: 'lun', bus: lun.bus ?? 'scsi', readonly: lun.readonly === true };
  return { media: 'disk', bus: disk?.bus ?? 'virtio', readonly: disk?.readonly === true };
}

function defaultCache(medium: Medium | undefined): DiskCache {
  return medium?.cacheNone === false ? 'writeback' : 'none';
}
