/** Validates a disk of a spec: contradictory settings, and buses that the machine does not have. */
import type { Disk } from '#api/domain/disk.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import type { DiskDevice } from '#node/hardware/domain-definition.ts';

const KINDS = ['disk', 'cdrom', 'floppy', 'lun'] as const;

/** Buses on which QEMU has no read-only disks. */
const ALWAYS_WRITABLE: ReadonlySet<string> = new Set(['sata', 'ide']);

export function validateDisk(disk: Disk, device: DiskDevice, field: string, layout: Layout): FieldError[] {
  return [
    ...validateKind(disk, device, field),
    ...validateBus(disk, device, field, layout),
    ...validateDrive(disk, field),
    ...(disk.lun === undefined ? [] : validateLun(disk, device, field)),
  ];
}

function validateKind(disk: Disk, { media, bus, readonly }: DiskDevice, field: string): FieldError[] {
  const problems: FieldError[] = [];
  const [first, second] = KINDS.filter((kind) => disk[kind] !== undefined);
  if (second !== undefined)
    problems.push(forbiddenField(`${field}.${second}`, `may not be set together with ${first}`));
  if (disk.disk?.pciAddress !== undefined && bus !== 'virtio') {
    problems.push(forbiddenField(`${field}.disk.pciAddress`, 'only disks on the virtio bus have a PCI address'));
  }
  if (media === 'disk' && ALWAYS_WRITABLE.has(bus) && readonly) {
    const detail = `${bus} disks are always writable; use virtio, scsi or a cdrom for a read-only disk`;
    problems.push(invalidValue(`${field}.disk.bus`, bus, detail));
  }
  return problems;
}

/** Checks that the chipset has the controller of the disk. */
function validateBus(disk: Disk, { media, bus }: DiskDevice, field: string, { chipset, drives }: Layout): FieldError[] {
  if (bus === 'virtio' || drives[bus] !== undefined) return [];
  if (bus === 'fdc') {
    const detail = `${chipset} machines have no floppy controller; use a cdrom, or a machine type pc-i440fx-*`;
    return [forbiddenField(`${field}.floppy`, detail)];
  }
  const busField = `${field}.${disk.cdrom === undefined ? media : 'cdrom'}.bus`;
  const virtio = media === 'cdrom' ? '' : ' or virtio';
  if (bus === 'ide') {
    const detail = `${chipset} machines have no IDE controller; use sata, scsi${virtio}, or a machine type pc-i440fx-*`;
    return [invalidValue(busField, bus, detail)];
  }
  const detail = `${chipset} machines have no SATA controller; use ide, scsi${virtio}`;
  return [invalidValue(busField, bus, detail)];
}

function validateDrive({ cdrom, floppy }: Disk, field: string): FieldError[] {
  const problems: FieldError[] = [];
  if (cdrom?.readonly === false) {
    problems.push(invalidValue(`${field}.cdrom.readonly`, false, 'a CD-ROM drive is always read-only'));
  }
  if (cdrom?.tray === 'open') problems.push(forbiddenField(`${field}.cdrom.tray`, 'open is not supported yet'));
  if (floppy?.tray === 'open') problems.push(forbiddenField(`${field}.floppy.tray`, 'open is not supported yet'));
  return problems;
}

function validateLun({ serial }: Disk, { source }: DiskDevice, field: string): FieldError[] {
  const problems: FieldError[] = [];
  if (serial !== undefined && serial !== '') {
    problems.push(forbiddenField(`${field}.serial`, 'a LUN has the serial number of its device'));
  }
  if (source !== undefined && (source.format !== 'raw' || !source.path.startsWith('/dev/'))) {
    problems.push(
      invalidValue(
        `${field}.lun`,
        source.path,
        'is not a block device; use a directLun, or a claim with volume mode Block',
      ),
    );
  }
  return problems;
}
