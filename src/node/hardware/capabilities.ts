/** The hardware that a hypervisor offers on this node. */

export interface MachineType {
  readonly name: string;
  readonly alias?: string;
  readonly deprecated: boolean;
  readonly maxCpus: number;
}

export interface Capabilities {
  readonly machines: readonly MachineType[];
  readonly accelerator: 'kvm' | 'tcg' | 'simulated';
  /** CPU features under QEMU's names; absent if unknown. */
  readonly cpuFeatures?: readonly string[];
  /** `QEMU 7.2.22`. */
  readonly version: string;
}
