import { anything, bool, int32, map, obj, str, type Infer, type Typed } from '#kube/schema-dsl.ts';

/** What else makes a device what it is; texts, or maps of them, as OVFs carry them. */
export interface SpecParams {
  [key: string]: string | SpecParams;
}

/**
 * A device as a guest has it: what was asked for, and where it is. Addresses are maps in libvirt's shape, kept as they
 * are: `{type: pci, domain: '0x0000', bus: '0x01', slot: '0x00', function: '0x0'}`. An empty map is no address: unknown.
 */
export const learnedDevice = obj(
  {
    id: str({ description: 'Our own id, which is also the id in QEMU: disk-rootdisk, nic-default, scsi0.' }),
    type: str({ description: 'disk, interface, controller, rng, balloon, tpm, console, video, sound ...' }),
    device: str({ description: 'Which one of the type: disk, cdrom, floppy, lun, virtio, e1000e, pcie-root-port ...' }),
    name: str({ description: 'The name in the spec, for what is named there.' }),
    address: map(str(), { description: 'Where the guest sees it; absent for what has none.' }),
    bootOrder: int32(),
    managed: bool({ description: 'Whether the spec asks for it; others come with the machine, or were found.' }),
    specialManaged: bool({
      description: 'Managed only because specialManagedDevices of the KubeVirt object lists it.',
    }),
    plugged: bool({ description: 'Absent: yes. False for what is attached, but not in the guest.' }),
    readonly: bool(),
    specParams: anything({ description: 'What else makes it what it is: model, index, bus.' }) as Typed<SpecParams>,
  },
  { required: ['id', 'type', 'device'] },
);

export type LearnedDevice = Infer<typeof learnedDevice>;
export type DeviceAddress = Record<string, string>;

/** A place for what comes later: it is kept whether or not something is in it. */
export function isRootPort({ type, device }: Pick<LearnedDevice, 'type' | 'device'>): boolean {
  return type === 'controller' && device === 'pcie-root-port';
}
