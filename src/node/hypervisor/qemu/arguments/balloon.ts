import type { Chipset } from '#api/devices/chipset.ts';
import type { BalloonDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

export function balloonArguments(balloon: BalloonDevice, chipset: Chipset): string[] {
  return deviceArguments({ driver: 'virtio-balloon-pci', id: balloon.id, ...pciPlace(balloon, chipset) });
}
