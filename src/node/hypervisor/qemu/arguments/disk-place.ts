/** The QEMU driver of a disk and its place on the bus. */
import { USB_ID } from '#api/devices/fixed-devices.ts';
import type { Chipset } from '#api/devices/chipset.ts';
import { invariant, unreachable } from '#lib/invariant.ts';
import type { DiskDevice } from '#node/hardware/domain-definition.ts';
import type { DeviceOptions } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { usbPort } from '#node/hypervisor/qemu/arguments/usb.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

export function diskPlace(disk: DiskDevice, chipset: Chipset): DeviceOptions {
  switch (disk.bus) {
    case 'virtio':
      return { driver: 'virtio-blk-pci', ...pciPlace(disk, chipset) };
    case 'sata':
      invariant(chipset === 'q35', `${disk.id} is on the SATA controller of q35`);
      return { driver: ideDriver(disk), bus: `ide.${driveUnit(disk)}`, unit: 0 };
    case 'ide':
      invariant(chipset === 'i440fx', `${disk.id} is on the IDE controller of i440fx`);
      // The controller has two buses with two drives each.
      return { driver: ideDriver(disk), bus: `ide.${disk.address?.['bus'] ?? 0}`, unit: driveUnit(disk) };
    case 'scsi':
      return { ...scsiDriver(disk), bus: 'scsi0.0', channel: 0, 'scsi-id': 0, lun: driveUnit(disk) };
    case 'usb':
      return { driver: 'usb-storage', bus: `${USB_ID}.0`, port: String(usbPort(disk)), removable: false };
    case 'fdc':
      invariant(chipset === 'i440fx', `${disk.id} is on the floppy controller of i440fx`);
      return { driver: 'floppy', bus: 'floppy-bus.0', unit: driveUnit(disk) };
    default:
      return unreachable(disk.bus);
  }
}

export function driveUnit({ id, address }: DiskDevice): number {
  const unit = address?.['type'] === 'drive' ? address['unit'] : undefined;
  invariant(unit !== undefined && /^\d{1,3}$/.test(unit), `${id} has a drive address`);
  return Number(unit);
}

function ideDriver({ media }: DiskDevice): string {
  return media === 'cdrom' ? 'ide-cd' : 'ide-hd';
}

function scsiDriver({ id, media, serial }: DiskDevice): DeviceOptions {
  // Passes the guest's SCSI commands to the device.
  if (media === 'lun') return { driver: 'scsi-block' };
  // Without a device_id, QEMU would derive one from how the disk was attached.
  return { driver: media === 'cdrom' ? 'scsi-cd' : 'scsi-hd', device_id: serial ?? id };
}
