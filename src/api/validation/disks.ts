/** Disks: each is one device with the content of the volume of its name. */
import type { Disk } from '#api/domain/disk.ts';
import { checkNames, setOf } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, tooMany, type FieldError } from '#kube/field-error.ts';

/** The ports of the AHCI controller that comes with the machine. */
const MAX_SATA = 6;

export function checkDisks({ domain, volumes = [] }: VmiSpec, path: string): FieldError[] {
  const disks = domain.devices?.disks ?? [];
  const field = `${path}.domain.devices.disks`;
  const contents = new Set(volumes.map(({ name }) => name));
  const readOnly = new Set(
    volumes.filter((volume) => volume.persistentVolumeClaim?.readOnly === true).map(({ name }) => name),
  );
  const errors = checkNames(disks, field);
  for (const [i, disk] of disks.entries()) {
    errors.push(
      ...checkDisk(disk, `${field}[${i}]`),
      ...checkWritable(disk, readOnly.has(disk.name), `${field}[${i}]`),
    );
    if (contents.has(disk.name)) continue;
    errors.push(invalidValue(`${field}[${i}].name`, disk.name, `there is no volume of this name in ${path}.volumes`));
  }
  const sata = disks.filter((disk) => busOf(disk) === 'sata').length;
  if (sata > MAX_SATA) {
    const { message } = tooMany(field, sata, MAX_SATA);
    errors.push({ reason: 'FieldValueTooMany', field, message: `${message} on the bus sata` });
  }
  return errors;
}

export function busOf({ disk, cdrom }: Disk): string {
  return cdrom === undefined ? (disk?.bus ?? 'virtio') : (cdrom.bus ?? 'sata');
}

function checkDisk(disk: Disk, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (setOf(disk, ['disk', 'cdrom']).length > 1) {
    errors.push(forbiddenField(`${path}.cdrom`, 'only one of disk and cdrom may be set'));
  }
  if (disk.cdrom?.readonly === false) {
    errors.push(forbiddenField(`${path}.cdrom.readonly`, 'a CD-ROM is always read-only'));
  }
  if (disk.cdrom?.tray === 'open') errors.push(forbiddenField(`${path}.cdrom.tray`, 'open is not supported yet'));
  if (disk.disk?.pciAddress !== undefined && busOf(disk) !== 'virtio') {
    const text = 'setting a PCI address is only possible for disks on the bus virtio';
    errors.push(forbiddenField(`${path}.disk.pciAddress`, text));
  }
  return errors;
}

/** QEMU knows no SATA disk that is only read. */
function checkWritable(disk: Disk, contentIsReadOnly: boolean, path: string): FieldError[] {
  const isReadOnly = contentIsReadOnly || disk.disk?.readonly === true;
  if (!isReadOnly || disk.cdrom !== undefined || busOf(disk) !== 'sata') return [];
  const text = 'sata disks can always be written; take virtio, scsi or a cdrom for what is read-only';
  return [invalidValue(`${path}.disk.bus`, 'sata', text)];
}
