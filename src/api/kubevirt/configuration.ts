/** The settings that the KubeVirt object holds, with their defaults filled in. */
import type { KubeVirt } from '#api/kubevirt/kind.ts';

export interface Configuration {
  /** For VMs that name no machine type. */
  readonly defaultMachineType: string;
  /** Globs of machine types that VMs may have. */
  readonly emulatedMachines: readonly string[];
  /** Devices that count as managed although no spec asks for them. */
  readonly specialManagedDevices: readonly { readonly type: string; readonly device: string }[];
}

export function configurationOf(kubevirt: Pick<KubeVirt, 'spec'> | undefined): Configuration {
  const { machineType, emulatedMachines, architectureConfiguration, specialManagedDevices } = kubevirt?.spec?.configuration ?? {};
  const amd64 = architectureConfiguration?.amd64;
  return {
    defaultMachineType: machineType || amd64?.machineType || 'q35',
    emulatedMachines: emulatedMachines ?? amd64?.emulatedMachines ?? ['q35*', 'pc-q35*'],
    specialManagedDevices: specialManagedDevices ?? [],
  };
}
