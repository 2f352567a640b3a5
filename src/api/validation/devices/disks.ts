/** Checks disks: each is one device with the content of the volume of its name. chipset.ts checks the chipset. */
import type { Chipset } from '#api/devices/chipset.ts';
import { busOf, isPlugged } from '#api/devices/disk-bus.ts';
import { HOTPLUG_BUSES, type Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { chipsetOfSpec } from '#api/validation/devices/chipset-of-spec.ts';
import { checkNames, listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, tooMany, type FieldError } from '#kube/field-error.ts';

/**
 * Limits by bus: the ports of the AHCI controller, the units of the IDE controller and the drives of the floppy
 * controller.
 */
const MAX_DISKS: Readonly<Record<string, number>> = { sata: 6, ide: 4, fdc: 2 };
const KINDS = ['disk', 'cdrom', 'floppy', 'lun'] as const;
/** Sources that can be a block device of the node; only the node knows whether a claim is one. */
const DEVICES_OF_NODE = ['directLun', 'persistentVolumeClaim'] as const;

export function checkDisks(spec: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  const { domain, volumes = [] } = spec;
  const chipset = chipsetOfSpec(spec, configuration);
  const disks = domain.devices?.disks ?? [];
  const field = `${path}.domain.devices.disks`;
  const contents = new Map(volumes.map((volume) => [volume.name, volume]));
  const errors = checkNames(disks, field);
  for (const [i, disk] of disks.entries()) {
    const at = `${field}[${i}]`;
    const content = contents.get(disk.name);
    errors.push(...checkDisk(disk, at));
    const bus = busOf(disk, chipset);
    if (content === undefined) {
      errors.push(invalidValue(`${at}.name`, disk.name, `there is no volume with this name in ${path}.volumes`));
    } else errors.push(...checkContent({ disk, bus, content }, at));
  }
  return [...errors, ...checkCounts(disks, field, chipset)];
}

function checkDisk(disk: Disk, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const kinds = listSetKeys(disk, KINDS);
  if (kinds.length > 1) {
    errors.push(forbiddenField(`${path}.${kinds.at(-1)!}`, `only one of ${kinds.join(' and ')} may be set`));
  }
  if (disk.cdrom?.readonly === false) {
    errors.push(forbiddenField(`${path}.cdrom.readonly`, 'a CD-ROM is always read-only'));
  }
  for (const kind of ['cdrom', 'floppy'] as const) {
    if (disk[kind]?.tray === 'open') errors.push(forbiddenField(`${path}.${kind}.tray`, 'open is not supported yet'));
  }
  if (disk.disk?.pciAddress !== undefined && (disk.disk.bus ?? 'virtio') !== 'virtio') {
    const text = 'a PCI address is only possible for disks on the virtio bus';
    errors.push(forbiddenField(`${path}.disk.pciAddress`, text));
  }
  if (disk.lun !== undefined && disk.serial) {
    errors.push(forbiddenField(`${path}.serial`, 'a LUN has the serial of its device'));
  }
  return errors;
}

interface DiskContent {
  readonly disk: Disk;
  readonly bus: string;
  readonly content: VmiVolume;
}

function checkContent({ disk, bus, content }: DiskContent, path: string): FieldError[] {
  const { persistentVolumeClaim: claim, directLun } = content;
  return [
    ...checkWritable(disk, bus, claim?.readOnly === true, path),
    ...(disk.lun === undefined || listSetKeys(content, DEVICES_OF_NODE).length > 0
      ? []
      : [forbiddenField(`${path}.lun`, 'requires a directLun volume, or a claim of volume mode Block')]),
    ...(directLun === undefined
      ? []
      : listSetKeys(disk, ['cdrom', 'floppy']).map((kind) =>
          forbiddenField(`${path}.${kind}`, 'a directLun volume must be a lun or a disk'),
        )),
    ...(claim?.hotpluggable === true ? checkHotpluggable(disk, bus, path) : []),
  ];
}

/** QEMU does not support read-only SATA and IDE disks. */
function checkWritable(disk: Disk, bus: string, contentIsReadOnly: boolean, path: string): FieldError[] {
  const isReadOnly = contentIsReadOnly || disk.disk?.readonly === true;
  if (!isReadOnly || disk.cdrom !== undefined || (bus !== 'sata' && bus !== 'ide')) return [];
  const text = `${bus} disks are always writable; use virtio, scsi or a cdrom for read-only content`;
  return [invalidValue(`${path}.disk.bus`, bus, text)];
}

/** Checks a disk that can be hotplugged: it must be a disk or a LUN on a hotplug bus, and not a boot device. */
function checkHotpluggable(disk: Disk, bus: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const [drive] = listSetKeys(disk, ['cdrom', 'floppy']);
  if (drive !== undefined) {
    errors.push(forbiddenField(`${path}.${drive}`, 'a hotpluggable volume must be a disk or a lun'));
  } else if (!(HOTPLUG_BUSES as readonly string[]).includes(bus)) {
    errors.push(invalidValue(`${path}.disk.bus`, bus, "a hotpluggable volume requires bus to be 'scsi' or 'virtio'"));
  }
  if (disk.bootOrder !== undefined) {
    errors.push(forbiddenField(`${path}.bootOrder`, 'a disk with a hotpluggable volume cannot be a boot device'));
  }
  return errors;
}

function checkCounts(disks: readonly Disk[], field: string, chipset: Chipset | undefined): FieldError[] {
  return Object.entries(MAX_DISKS).flatMap(([bus, max]) => {
    const count = disks.filter((disk) => isPlugged(disk) && busOf(disk, chipset) === bus).length;
    if (count <= max) return [];
    const { message } = tooMany(field, count, max);
    const where = bus === 'fdc' ? 'that are floppies' : `on the ${bus} bus`;
    return [{ reason: 'FieldValueTooMany', field, message: `${message} ${where}` }];
  });
}
