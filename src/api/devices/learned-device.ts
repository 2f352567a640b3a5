import { anything, bool, int32, map, obj, str, type Infer, type Typed } from '#kube/schema-dsl.ts';

/** Further properties of a device: strings, or maps of strings, as in an OVF. */
export interface SpecParams {
  [key: string]: string | SpecParams;
}

/**
 * A device as a guest has it: its kind and its address. Addresses are maps in libvirt's shape, stored unchanged:
 * `{type: pci, domain: '0x0000', bus: '0x01', slot: '0x00', function: '0x0'}`. An empty map means that it is unknown.
 */
export const learnedDevice = obj(
  {
    id: str({ description: 'The id of the device, also in QEMU: disk-rootdisk, nic-default, scsi0.' }),
    type: str({ description: 'disk, interface, controller, rng, balloon, tpm, console, video, sound ...' }),
    device: str({
      description: 'The kind of device within its type: disk, cdrom, floppy, lun, virtio, e1000e, pcie-root-port ...',
    }),
    name: str({ description: 'The name in the spec, if the device is named there.' }),
    address: map(str(), {
      description: 'The address at which the guest sees the device. Absent if the device has none.',
    }),
    bootOrder: int32(),
    managed: bool({
      description: 'True if the spec asks for the device; other devices come with the machine or an import.',
    }),
    specialManaged: bool({
      description: 'Managed only because specialManagedDevices of the KubeVirt object lists it.',
    }),
    plugged: bool({
      description: 'False if the device is attached to the VM but not present in the guest. Defaults to true.',
    }),
    readonly: bool(),
    specParams: anything({ description: 'Further properties: model, index, bus.' }) as Typed<SpecParams>,
  },
  { required: ['id', 'type', 'device'] },
);

export type LearnedDevice = Infer<typeof learnedDevice>;
export type DeviceAddress = Record<string, string>;

/** Reports whether the device is a PCI Express root port. Root ports are kept even if nothing is plugged into them. */
export function isRootPort({ type, device }: Pick<LearnedDevice, 'type' | 'device'>): boolean {
  return type === 'controller' && device === 'pcie-root-port';
}
