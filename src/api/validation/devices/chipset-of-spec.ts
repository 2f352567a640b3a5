import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

/**
 * Returns the chipset of the machine type, or of the default type. Undefined for other chipsets; machine.ts refuses
 * those.
 */
export function chipsetOfSpec({ domain }: VmiSpec, { defaultMachineType }: Configuration): Chipset | undefined {
  return chipsetOf(domain.machine?.type || defaultMachineType);
}
