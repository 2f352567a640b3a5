import type { Chipset } from '#api/devices/chipset.ts';
import type { WatchdogDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

export function watchdogArguments(watchdog: WatchdogDevice, chipset: Chipset): string[] {
  return [
    ...deviceArguments({ driver: 'i6300esb', id: watchdog.id, ...pciPlace(watchdog, chipset) }),
    '-action',
    `watchdog=${watchdog.action}`,
  ];
}
