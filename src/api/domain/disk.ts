import { bool, int32, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

export const DISK_BUSES = ['virtio', 'sata', 'scsi'] as const;
export const CDROM_BUSES = ['sata', 'scsi'] as const;
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
  },
  { required: ['name'] },
);

export type Disk = Infer<typeof disk>;
export type DiskBus = (typeof DISK_BUSES)[number];
export type DiskCache = (typeof DISK_CACHES)[number];
