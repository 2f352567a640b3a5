/** Describes one disk of a VM with the size of its volume. Only the data of claims and of cloud-init is exported. Pure. */
import type { Chipset } from '#api/devices/chipset.ts';
import { busOf } from '#api/devices/disk-bus.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { describeCloudInit } from '#formats/vm/cloud-init.ts';
import type { Findings } from '#formats/findings.ts';
import type { DescribedDisk, DiskMedia } from '#formats/machine.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { parseQuantity, findQuantityError, quantityToNumber } from '#kube/quantity.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

/** The default size of content that is created at each start and not exported. */
const SMALL_BYTES = 1024 ** 2;

export function describeDisk(
  disk: Disk,
  volume: VmiVolume | undefined,
  claims: ReadonlyMap<string, PersistentVolumeClaim>,
  chipset: Chipset | undefined,
  findings: Findings,
): DescribedDisk {
  const { name, bootOrder, serial, cache, plugged, optional } = disk;
  const hotpluggable = volume?.persistentVolumeClaim?.hotpluggable;
  const media = mediaOf(disk, volume, findings);
  return {
    id: `disk-${name}`,
    name,
    media,
    bus: busOf(disk, chipset),
    ...describeContent(name, volume, claims, findings),
    format: 'raw',
    ...(bootOrder !== undefined && { bootOrder }),
    readonly: isReadonly(disk, volume),
    plugged: plugged !== false,
    optional: optional === true,
    ...(serial !== undefined && serial !== '' && { serial }),
    ...(cache !== undefined && { cache }),
    ...(hotpluggable !== undefined && { hotpluggable }),
    ...(volume?.directLun !== undefined && { lun: { ...volume.directLun } }),
  };
}

function mediaOf({ name, cdrom, floppy, lun }: Disk, volume: VmiVolume | undefined, findings: Findings): DiskMedia {
  if (cdrom !== undefined) return 'cdrom';
  if (floppy !== undefined) return 'floppy';
  if (lun === undefined || volume?.directLun !== undefined) return lun === undefined ? 'disk' : 'lun';
  findings.addNote(`the disk ${name} is a LUN on a claim; its data is written as that of a disk`);
  return 'disk';
}

function isReadonly({ disk, cdrom, floppy, lun }: Disk, volume: VmiVolume | undefined): boolean {
  if (cdrom !== undefined) return true;
  return (disk ?? floppy ?? lun)?.readonly === true || volume?.persistentVolumeClaim?.readOnly === true;
}

function describeContent(
  name: string,
  volume: VmiVolume | undefined,
  claims: ReadonlyMap<string, PersistentVolumeClaim>,
  findings: Findings,
): Pick<DescribedDisk, 'file' | 'sizeBytes' | 'cloudInit'> {
  if (volume === undefined || volume.directLun !== undefined) return {};
  if (volume.persistentVolumeClaim !== undefined) {
    const claim = claims.get(volume.persistentVolumeClaim.claimName);
    const size = bytesOf(claim?.status?.capacity?.['storage'] ?? claim?.spec.resources?.requests?.['storage']);
    return { file: `${name}.img`, ...size };
  }
  if (volume.cloudInitNoCloud !== undefined) {
    return { sizeBytes: SMALL_BYTES, cloudInit: describeCloudInit(volume.cloudInitNoCloud) };
  }
  findings.addNote(`the content of the disk ${name} is not exported: it is not a claim`);
  const { emptyDisk, hostDisk, ephemeral } = volume;
  const base = ephemeral?.persistentVolumeClaim?.claimName;
  const claim = base === undefined ? undefined : claims.get(base);
  const size = bytesOf(emptyDisk?.capacity ?? hostDisk?.capacity ?? claim?.status?.capacity?.['storage']);
  return { sizeBytes: SMALL_BYTES, ...size };
}

function bytesOf(quantity: IntOrString | undefined): { sizeBytes?: number } {
  if (quantity === undefined || findQuantityError(quantity) !== undefined) return {};
  return { sizeBytes: Math.ceil(quantityToNumber(parseQuantity(String(quantity)))) };
}
