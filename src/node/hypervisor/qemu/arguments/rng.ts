import type { Chipset } from '#api/devices/chipset.ts';
import type { RngDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

export function rngArguments(rng: RngDevice, chipset: Chipset): string[] {
  const source = { 'qom-type': 'rng-random', id: `obj-${rng.id}`, filename: '/dev/urandom' };
  return [
    '-object',
    JSON.stringify(source),
    ...deviceArguments({ driver: 'virtio-rng-pci', id: rng.id, ...pciPlace(rng, chipset), rng: source.id }),
  ];
}
