import type {
  BalloonDevice,
  DiskDevice,
  InterfaceDevice,
  OtherDevice,
  RngDevice,
  ScsiController,
  VideoDevice,
} from '#node/definition/domain-definition.ts';

/** What has a place of its own, on PCI or on a controller. */
export type Placeable =
  | DiskDevice
  | InterfaceDevice
  | ScsiController
  | RngDevice
  | BalloonDevice
  | VideoDevice
  | OtherDevice;

/** A device that is complete but for its address. */
export interface Unplaced<T extends Placeable = Placeable> {
  readonly device: T;
  /** For messages: `spec.domain.devices.disks[0]`. */
  readonly field: string;
  /** As the spec has it. */
  readonly pciAddress?: string | undefined;
}
