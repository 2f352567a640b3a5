import type { Device } from '#node/hardware/domain-definition.ts';

/** A device that needs a place, on PCI or on a controller. */
export type PlaceableDevice = Exclude<Device, { readonly type: 'root-port' | 'tpm' | 'serial' | 'agent-channel' }>;

/** A device that is complete except for its address. */
export interface UnplacedDevice<T extends PlaceableDevice = PlaceableDevice> {
  readonly device: T;
  /** For messages: `spec.domain.devices.disks[0]`. */
  readonly field: string;
  /** The address in the spec. */
  readonly pciAddress?: string | undefined;
}
