/** On which bus a disk is, and whether it can come and go while its guest runs: one rule for all who ask. Pure. */
import type { Chipset } from '#api/chipset.ts';
import { HOTPLUG_BUSES, type Disk, type DiskBus } from '#api/domain/disk.ts';
import type { Volume } from '#api/domain/volume.ts';

/** `fdc` for floppies, which is no bus that anybody names. A CD-ROM is by itself where its chipset has drives. */
export function busOf({ disk, cdrom, floppy, lun }: Disk, chipset: Chipset | undefined): DiskBus | 'fdc' {
  if (cdrom !== undefined) return cdrom.bus ?? (chipset === 'i440fx' ? 'ide' : 'sata');
  if (floppy !== undefined) return 'fdc';
  return lun === undefined ? (disk?.bus ?? 'virtio') : (lun.bus ?? 'scsi');
}

/** Whether there is a device for it in the guest. */
export function isPlugged({ plugged }: Disk): boolean {
  return plugged !== false;
}

/** Whether it comes and goes while the guest runs. What is booted from stays, and so do drives. */
export function isMovable(disk: Disk, volume: Volume | undefined): boolean {
  const isFixed = disk.cdrom !== undefined || disk.floppy !== undefined || disk.bootOrder !== undefined;
  if (isFixed || volume?.persistentVolumeClaim?.hotpluggable !== true) return false;
  return HOTPLUG_BUSES.some((bus) => bus === busOf(disk, undefined));
}
