/** Defines the root ports for pluggable devices, used and spare ones. */
import { rootPortAddress } from '#node/hardware/root-ports.ts';
import { pciAddressToMap } from '#api/devices/pci-address.ts';
import type { RootPort } from '#node/hardware/domain-definition.ts';

export function defineRootPorts(count: number): RootPort[] {
  return Array.from({ length: count }, (_, index) => ({
    type: 'root-port',
    id: `rp${index}`,
    index,
    address: pciAddressToMap(rootPortAddress(index)),
  }));
}
