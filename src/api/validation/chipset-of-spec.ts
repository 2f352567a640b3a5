import { chipsetOf, type Chipset } from '#api/chipset.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

/** Of the machine type, or of the default where none is named. Undefined for what is neither; machine.ts judges that. */
export function chipsetOfSpec({ domain }: VmiSpec, { defaultMachineType }: Configuration): Chipset | undefined {
  return chipsetOf(domain.machine?.type || defaultMachineType);
}
