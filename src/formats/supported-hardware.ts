/** The buses and models that we support on each chipset, and their replacements. Pure. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DiskBus } from '#api/domain/disk.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import type { DiskMedia } from '#formats/machine.ts';

/** Returns a bus for which every guest has a driver. */
export function fallbackBus(chipset: Chipset | undefined): DiskBus {
  return chipset === 'i440fx' ? 'ide' : 'sata';
}

export function fallbackModel(chipset: Chipset | undefined): InterfaceModel {
  return chipset === 'i440fx' ? 'e1000' : 'e1000e';
}

export function isSupportedBus(bus: DiskBus, media: DiskMedia, chipset: Chipset | undefined): boolean {
  if (bus === 'ide') return chipset === 'i440fx';
  return !(bus === 'virtio' && media === 'cdrom');
}

export function isSupportedModel(model: InterfaceModel, chipset: Chipset | undefined): boolean {
  return chipset === 'i440fx' || (model !== 'e1000' && model !== 'rtl8139');
}

export const NO_FLOPPY = 'only i440fx machines have floppy drives';
