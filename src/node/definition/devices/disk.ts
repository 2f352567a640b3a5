/** Disks, CD-ROM and floppy drives, LUNs; what is in them was prepared by volumes/. */
import type { Disk, DiskCache } from '#api/domain/disk.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import { diskQueues } from '#node/definition/devices/fixtures.ts';
import { nameProblems } from '#node/definition/devices/device-name.ts';
import { diskProblems } from '#node/definition/devices/disk-problems.ts';
import type { DiskDevice, DiskSource } from '#node/definition/domain-definition.ts';

/** A volume as it lies on this node. */
export interface Medium {
  readonly source: DiskSource;
  readonly readonly: boolean;
  /** Whether its file system can be read and written past the page cache; it can unless this is false. */
  readonly cacheNone?: boolean;
}

const FIELD = 'spec.domain.devices.disks';

/** Those that are in the guest: neither unplugged ones, nor optional ones without a medium. */
export function defineDisks(
  spec: VmiSpec,
  media: ReadonlyMap<string, Medium>,
  layout: Layout,
  problems: FieldError[],
): Unplaced<DiskDevice>[] {
  const disks = spec.domain.devices?.disks ?? [];
  const names = disks.map(({ name }) => name);
  problems.push(...nameProblems(names, FIELD));
  const queues = diskQueues(spec.domain);
  const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
  return disks.flatMap((disk, i) => {
    const medium = media.get(disk.name);
    const isMissing = medium === undefined && volumes.has(disk.name) && disk.optional === true;
    if (disk.plugged === false || isMissing) return [];
    const field = `${FIELD}[${i}]`;
    const unplaced = defineDisk(disk, field, medium, { layout, queues }, problems);
    const mayBeEmpty = isDrive(unplaced.device) && !volumes.has(disk.name);
    if (medium === undefined && !mayBeEmpty) {
      problems.push(invalidValue(`${field}.name`, disk.name, 'there is no volume of this name'));
    }
    return [unplaced];
  });
}

export interface DiskContext {
  readonly layout: Layout;
  /** Of those that can have more than one. */
  readonly queues?: number | undefined;
}

/** One of them with its medium; absent: a drive without one. */
export function defineDisk(
  disk: Disk,
  field: string,
  medium: Medium | undefined,
  { layout, queues }: DiskContext,
  problems: FieldError[],
): Unplaced<DiskDevice> {
  const plain = deviceOf(disk, medium, layout);
  const device = queues !== undefined && plain.bus === 'virtio' ? { ...plain, queues } : plain;
  problems.push(...diskProblems(disk, device, field, layout));
  return { device, field, pciAddress: disk.disk?.pciAddress };
}

/** Whether it is there without a medium, too. */
const isDrive = ({ media }: DiskDevice) => media === 'cdrom' || media === 'floppy';

function deviceOf(disk: Disk, medium: Medium | undefined, layout: Layout): DiskDevice {
  const { name, serial, bootOrder } = disk;
  const kind = kindOf(disk, layout);
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

function kindOf(
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
