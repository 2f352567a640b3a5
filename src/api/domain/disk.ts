import { bool, int32, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

/** `ide` exists only with i440fx machine types. */
export const DISK_BUSES = ['virtio', 'sata', 'scsi', 'ide', 'usb'] as const;
export const CDROM_BUSES = ['sata', 'scsi', 'ide'] as const;
/** Buses that support hotplug. */
export const HOTPLUG_BUSES = ['scsi', 'virtio'] as const;
export const DISK_CACHES = ['none', 'writethrough', 'writeback'] as const;

export const disk = obj(
  {
    name: str({ minLength: 1, maxLength: 63, description: 'The name of the volume with the content of the disk.' }),
    bootOrder: int32({
      minimum: 1,
      description: 'Boot order among disks and interfaces; lower numbers boot first. Each number may be used once.',
    }),
    serial: str({
      maxLength: 36,
      pattern: '^[A-Za-z0-9_.+-]*$',
      description: 'The serial number that the guest sees.',
    }),
    cache: oneOf(DISK_CACHES, {
      description: 'Defaults to none, or to writeback if the file system does not support none.',
    }),
    disk: obj({
      bus: oneOf(DISK_BUSES, { description: 'Defaults to virtio.' }),
      readonly: bool(),
      pciAddress: str({
        description: 'The PCI address of the disk in the guest, for example 0000:05:00.0. Only for the virtio bus.',
      }),
    }),
    cdrom: obj({
      bus: oneOf(CDROM_BUSES, { description: 'Defaults to sata, or to ide with i440fx machine types.' }),
      readonly: bool({ description: 'Must be true.' }),
      tray: oneOf(['closed', 'open']),
    }),
    floppy: obj(
      { readonly: bool(), tray: oneOf(['closed', 'open']) },
      { description: 'A floppy drive. Only with i440fx machine types.' },
    ),
    lun: obj(
      {
        bus: oneOf(['scsi'], { description: 'Must be scsi.' }),
        readonly: bool(),
        reservation: bool({ description: 'Must be false: persistent reservations are not passed through.' }),
      },
      {
        description:
          'A SCSI device of the node, passed through to the guest. Its volume is a directLun or a claim of volume mode Block.',
      },
    ),
    dedicatedIOThread: bool({
      description: 'Gives the disk an I/O thread of its own. Only for the virtio bus.',
    }),
    plugged: bool({
      description: 'If false, the disk is attached to the VM but not present in the guest. Defaults to true.',
    }),
    optional: bool({ description: 'If true, the VM starts without the disk when its volume does not exist.' }),
  },
  { required: ['name'] },
);

export type Disk = Infer<typeof disk>;
export type DiskBus = (typeof DISK_BUSES)[number];
export type DiskCache = (typeof DISK_CACHES)[number];
