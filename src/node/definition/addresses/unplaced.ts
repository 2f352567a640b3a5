import type { Device } from '#node/definition/domain-definition.ts';

/** What has a place of its own, on PCI or on a controller. */
export type Placeable = Exclude<Device, { readonly type: 'root-port' | 'tpm' | 'serial' | 'agent-channel' }>;

/** A device that is complete but for its address. */
export interface Unplaced<T extends Placeable = Placeable> {
  readonly device: T;
  /** For messages: `spec.domain.devices.disks[0]`. */
  readonly field: string;
  /** As the spec has it. */
  readonly pciAddress?: string | undefined;
}
