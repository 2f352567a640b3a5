import type { RootPort } from '#node/hardware/domain-definition.ts';
import { deviceArguments } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

/**
 * Builds the arguments of a root port. `slot` is 0, as in libvirt: with other values, guests would name interfaces after
 * them (ens1 instead of enp1s0).
 */
export function rootPortArguments(port: RootPort): string[] {
  const place = pciPlace(port, 'q35');
  return deviceArguments({
    driver: 'pcie-root-port',
    id: port.id,
    ...place,
    chassis: port.index + 1,
    ...(place.addr.endsWith('.0x0') && { multifunction: true }),
  });
}
