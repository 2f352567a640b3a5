/** What is wrong with a disk of a spec: what contradicts itself, and what the machine has no place for. */
import type { Disk } from '#api/domain/disk.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import type { DiskDevice } from '#node/definition/domain-definition.ts';

const KINDS = ['disk', 'cdrom', 'floppy', 'lun'] as const;

/** Disks that QEMU only has as ones that can be written. */
const ALWAYS_WRITTEN: ReadonlySet<string> = new Set(['sata', 'ide']);

export function diskProblems(disk: Disk, device: DiskDevice, field: string, layout: Layout): FieldError[] {
  return [
    ...kindProblems(disk, device, field),
    ...busProblems(disk, device, field, layout),
    ...driveProblems(disk, field),
    ...(disk.lun === undefined ? [] : lunProblems(disk, device, field)),
  ];
}

function kindProblems(disk: Disk, { media, bus, readonly }: DiskDevice, field: string): FieldError[] {
  const problems: FieldError[] = [];
  const [first, second] = KINDS.filter((kind) => disk[kind] !== undefined);
  if (second !== undefined)
    problems.push(forbiddenField(`${field}.${second}`, `may not be set together with ${first}`));
  if (disk.disk?.pciAddress !== undefined && bus !== 'virtio') {
    problems.push(forbiddenField(`${field}.disk.pciAddress`, 'only disks on the virtio bus have one'));
  }
  if (media === 'disk' && ALWAYS_WRITTEN.has(bus) && readonly) {
    const detail = `${bus} disks can always be written; take virtio, scsi or a cdrom for what is read-only`;
    problems.push(invalidValue(`${field}.disk.bus`, bus, detail));
  }
  return problems;
}

/** A controller that the chipset does not have. */
function busProblems(disk: Disk, { media, bus }: DiskDevice, field: string, { chipset, drives }: Layout): FieldError[] {
  if (bus === 'virtio' || drives[bus] !== undefined) return [];
  if (bus === 'fdc') {
    const detail = `${chipset} machines have no floppy controller: take a cdrom, or a machine type pc-i440fx-*`;
    return [forbiddenField(`${field}.floppy`, detail)];
  }
  const busField = `${field}.${disk.cdrom === undefined ? media : 'cdrom'}.bus`;
  const virtio = media === 'cdrom' ? '' : ' or virtio';
  if (bus === 'ide') {
    const detail = `${chipset} machines have no IDE controller: take sata, scsi${virtio}, or a machine type pc-i440fx-*`;
    return [invalidValue(busField, bus, detail)];
  }
  const detail = `${chipset} machines have no SATA controller: take ide, scsi${virtio}`;
  return [invalidValue(busField, bus, detail)];
}

function driveProblems({ cdrom, floppy }: Disk, field: string): FieldError[] {
  const problems: FieldError[] = [];
  if (cdrom?.readonly === false) {
    problems.push(invalidValue(`${field}.cdrom.readonly`, false, 'a CD-ROM drive only reads'));
  }
  if (cdrom?.tray === 'open') problems.push(forbiddenField(`${field}.cdrom.tray`, 'open is not supported yet'));
  if (floppy?.tray === 'open') problems.push(forbiddenField(`${field}.floppy.tray`, 'open is not supported yet'));
  return problems;
}

function lunProblems({ serial }: Disk, { source }: DiskDevice, field: string): FieldError[] {
  const problems: FieldError[] = [];
  if (serial !== undefined && serial !== '') {
    problems.push(forbiddenField(`${field}.serial`, 'a LUN has the serial of the device that it is'));
  }
  if (source !== undefined && (source.format !== 'raw' || !source.path.startsWith('/dev/'))) {
    problems.push(
      invalidValue(
        `${field}.lun`,
        source.path,
        'is no block device: a LUN is a directLun, or a claim of the volume mode Block',
      ),
    );
  }
  return problems;
}
