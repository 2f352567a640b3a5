/** The bus of a disk, and whether the disk can be hotplugged: one rule for validation, controllers and nodes. Pure. */
import type { Chipset } from '#api/devices/chipset.ts';
import { HOTPLUG_BUSES, type Disk, type DiskBus } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';

/** Returns the bus, or `fdc` for floppies, which specs cannot name. The default for CD-ROMs depends on the chipset. */
export function busOf({ disk, cdrom, floppy, lun }: Disk, chipset: Chipset | undefined): DiskBus | 'fdc' {
  if (cdrom !== undefined) return cdrom.bus ?? (chipset === 'i440fx' ? 'ide' : 'sata');
  if (floppy !== undefined) return 'fdc';
  return lun === undefined ? (disk?.bus ?? 'virtio') : (lun.bus ?? 'scsi');
}

/** Reports whether the guest has a device for the disk. */
export function isPlugged({ plugged }: Disk): boolean {
  return plugged !== false;
}

/** Reports whether the disk can be hotplugged. Boot disks and drives cannot. */
export function isHotpluggable(disk: Disk, volume: VmiVolume | undefined): boolean {
  const isFixed = disk.cdrom !== undefined || disk.floppy !== undefined || disk.bootOrder !== undefined;
  if (isFixed || volume?.persistentVolumeClaim?.hotpluggable !== true) return false;
  return HOTPLUG_BUSES.some((bus) => bus === busOf(disk, undefined));
}
