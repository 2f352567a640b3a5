import { bool, int32, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

/** `ide` only with i440fx machine types. */
export const DISK_BUSES = ['virtio', 'sata', 'scsi', 'ide', 'usb'] as const;
export const CDROM_BUSES = ['sata', 'scsi', 'ide'] as const;
/** What a disk can be plugged into while the guest runs. */
export const HOTPLUG_BUSES = ['scsi', 'virtio'] as const;
export const DISK_CACHES = ['none', 'writethrough', 'writeback'] as const;

export const disk = obj(
  {
    name: str({ minLength: 1, maxLength: 63, description: 'The name of the volume that is its content.' }),
    bootOrder: int32({ minimum: 1, description: 'Among disks and interfaces; lower boots first, each number once.' }),
    serial: str({ maxLength: 36, pattern: '^[A-Za-z0-9_.+-]*$', description: 'What the guest sees as its serial.' }),
    cache: oneOf(DISK_CACHES, { description: 'none unless set, writeback where the file system cannot do that.' }),
    disk: obj({
      bus: oneOf(DISK_BUSES, { description: 'virtio unless set.' }),
      readonly: bool(),
      pciAddress: str({ description: 'Only for virtio: where the guest sees it, 0000:05:00.0.' }),
    }),
    cdrom: obj({
      bus: oneOf(CDROM_BUSES, { description: 'sata unless set.' }),
      readonly: bool({ description: 'On, and nothing else.' }),
      tray: oneOf(['closed', 'open']),
    }),
    floppy: obj(
      { readonly: bool(), tray: oneOf(['closed', 'open']) },
      { description: 'A floppy drive; only with i440fx machine types.' },
    ),
    lun: obj(
      {
        bus: oneOf(['scsi'], { description: 'scsi, and nothing else.' }),
        readonly: bool(),
        reservation: bool({ description: 'Must be false: persistent reservations are not passed through.' }),
      },
      { description: 'A SCSI device of the node, passed to the guest as it is; its volume is a directLun.' },
    ),
    dedicatedIOThread: bool({
      description: 'A thread of its own for what it reads and writes; only on the bus virtio.',
    }),
    plugged: bool({ description: 'On unless set to false: attached, but not in the guest, and no hardware to it.' }),
    optional: bool({ description: 'Whether the VM starts without it where its volume is not there.' }),
  },
  { required: ['name'] },
);

export type Disk = Infer<typeof disk>;
export type DiskBus = (typeof DISK_BUSES)[number];
export type DiskCache = (typeof DISK_CACHES)[number];
