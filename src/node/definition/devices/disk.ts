/** Disks and CD-ROM drives; what is in them was prepared by volumes/. */
import type { Disk, DiskCache } from '#api/domain/disk.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Unplaced } from '#node/definition/addresses/place-devices.ts';
import { nameProblems } from '#node/definition/devices/device-name.ts';
import type { DiskDevice, DiskSource } from '#node/definition/domain-definition.ts';

/** A volume as it lies on this node. */
export interface Medium {
  readonly source: DiskSource;
  readonly readonly: boolean;
  /** Whether its file system can be read and written past the page cache; it can unless this is false. */
  readonly cacheNone?: boolean;
}

const FIELD = 'spec.domain.devices.disks';

export function defineDisks(
  spec: VmiSpec,
  media: ReadonlyMap<string, Medium>,
  problems: FieldError[],
): Unplaced<DiskDevice>[] {
  const disks = spec.domain.devices?.disks ?? [];
  const names = disks.map(({ name }) => name);
  problems.push(...nameProblems(names, FIELD));
  const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
  return disks.map((disk, i) => {
    const field = `${FIELD}[${i}]`;
    const medium = media.get(disk.name);
    const device = deviceOf(disk, medium);
    problems.push(...diskProblems(disk, device, field));
    const mayBeEmpty = device.media === 'cdrom' && !volumes.has(disk.name);
    if (medium === undefined && !mayBeEmpty) {
      problems.push(invalidValue(`${field}.name`, disk.name, 'there is no volume of this name'));
    }
    return { device, field, pciAddress: disk.disk?.pciAddress };
  });
}

function deviceOf(disk: Disk, medium: Medium | undefined): DiskDevice {
  const { name, serial, bootOrder } = disk;
  return {
    type: 'disk',
    id: `disk-${name}`,
    name,
    media: disk.cdrom === undefined ? 'disk' : 'cdrom',
    bus: disk.cdrom === undefined ? (disk.disk?.bus ?? 'virtio') : (disk.cdrom.bus ?? 'sata'),
    ...(medium !== undefined && { source: medium.source }),
    readonly: disk.cdrom !== undefined || disk.disk?.readonly === true || medium?.readonly === true,
    ...(serial !== undefined && serial !== '' && { serial }),
    cache: disk.cache ?? defaultCache(medium),
    ...(bootOrder !== undefined && { bootOrder }),
  };
}

function defaultCache(medium: Medium | undefined): DiskCache {
  return medium?.cacheNone === false ? 'writeback' : 'none';
}

function diskProblems({ disk, cdrom }: Disk, device: DiskDevice, field: string): FieldError[] {
  const problems: FieldError[] = [];
  if (disk !== undefined && cdrom !== undefined) {
    problems.push(forbiddenField(`${field}.cdrom`, 'may not be set together with disk'));
  }
  if (disk?.pciAddress !== undefined && device.bus !== 'virtio') {
    problems.push(forbiddenField(`${field}.disk.pciAddress`, 'only disks on the virtio bus have one'));
  }
  if (cdrom?.readonly === false) {
    problems.push(invalidValue(`${field}.cdrom.readonly`, false, 'a CD-ROM drive only reads'));
  }
  if (cdrom?.tray === 'open') problems.push(forbiddenField(`${field}.cdrom.tray`, 'open is not supported yet'));
  if (device.media === 'disk' && device.bus === 'sata' && device.readonly) {
    const detail = 'sata disks can always be written; take virtio, scsi or a cdrom for what is read-only';
    problems.push(invalidValue(`${field}.disk.bus`, 'sata', detail));
  }
  return problems;
}
