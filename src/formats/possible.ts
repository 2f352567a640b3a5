/** What hardware of others can be here, per chipset, and what it becomes where it cannot. Pure. */
import type { Chipset } from '#api/chipset.ts';
import type { DiskBus } from '#api/domain/disk.ts';
import type { InterfaceModel } from '#api/domain/interface.ts';
import type { DiskMedia } from '#formats/machine.ts';

/** What every guest has a driver for. */
export function plainBus(chipset: Chipset | undefined): DiskBus {
  return chipset === 'i440fx' ? 'ide' : 'sata';
}

export function plainModel(chipset: Chipset | undefined): InterfaceModel {
  return chipset === 'i440fx' ? 'e1000' : 'e1000e';
}

export function isPossibleBus(bus: DiskBus, media: DiskMedia, chipset: Chipset | undefined): boolean {
  if (bus === 'ide') return chipset === 'i440fx';
  return !(bus === 'virtio' && media === 'cdrom');
}

export function isPossibleModel(model: InterfaceModel, chipset: Chipset | undefined): boolean {
  return chipset === 'i440fx' || (model !== 'e1000' && model !== 'rtl8139');
}

export const NO_FLOPPY = 'only i440fx machines have floppy drives';
