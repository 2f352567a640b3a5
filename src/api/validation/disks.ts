/** Disks: each is one device with the content of the volume of its name. What needs a chipset is in chipset.ts. */
import type { Chipset } from '#api/chipset.ts';
import { busOf, isPlugged } from '#api/disk-bus.ts';
import { HOTPLUG_BUSES, type Disk } from '#api/domain/disk.ts';
import type { Volume } from '#api/domain/volume.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { chipsetOfSpec } from '#api/validation/chipset-of-spec.ts';
import { checkNames, setOf } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, tooMany, type FieldError } from '#kube/field-error.ts';

/** By bus: the ports of the AHCI controller, the units of the IDE controller and the drives of the floppy controller. */
const MOST: Readonly<Record<string, number>> = { sata: 6, ide: 4, fdc: 2 };
const KINDS = ['disk', 'cdrom', 'floppy', 'lun'] as const;
/** Contents that can be a device of the node; whether a claim is one, only the node knows. */
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
      errors.push(invalidValue(`${at}.name`, disk.name, `there is no volume of this name in ${path}.volumes`));
    } else errors.push(...checkContent({ disk, bus, content }, at));
  }
  return [...errors, ...checkCounts(disks, field, chipset)];
}

function checkDisk(disk: Disk, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const kinds = setOf(disk, KINDS);
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
    const text = 'setting a PCI address is only possible for disks on the bus virtio';
    errors.push(forbiddenField(`${path}.disk.pciAddress`, text));
  }
  if (disk.lun !== undefined && disk.serial) {
    errors.push(forbiddenField(`${path}.serial`, 'a LUN has the serial of the device that it is'));
  }
  return errors;
}

interface Filled {
  readonly disk: Disk;
  readonly bus: string;
  readonly content: Volume;
}

function checkContent({ disk, bus, content }: Filled, path: string): FieldError[] {
  const { persistentVolumeClaim: claim, directLun } = content;
  return [
    ...checkWritable(disk, bus, claim?.readOnly === true, path),
    ...(disk.lun === undefined || setOf(content, DEVICES_OF_NODE).length > 0
      ? []
      : [forbiddenField(`${path}.lun`, 'only for a directLun volume, or for a claim of the volume mode Block')]),
    ...(directLun === undefined
      ? []
      : setOf(disk, ['cdrom', 'floppy']).map((kind) =>
          forbiddenField(`${path}.${kind}`, 'a directLun volume is only possible as lun or disk'),
        )),
    ...(claim?.hotpluggable === true ? checkHotpluggable(disk, bus, path) : []),
  ];
}

/** QEMU knows no SATA and no IDE disk that is only read. */
function checkWritable(disk: Disk, bus: string, contentIsReadOnly: boolean, path: string): FieldError[] {
  const isReadOnly = contentIsReadOnly || disk.disk?.readonly === true;
  if (!isReadOnly || disk.cdrom !== undefined || (bus !== 'sata' && bus !== 'ide')) return [];
  const text = `${bus} disks can always be written; take virtio, scsi or a cdrom for what is read-only`;
  return [invalidValue(`${path}.disk.bus`, bus, text)];
}

/** What may come while the guest runs: an own device, on a bus where that works, and nothing that it boots from. */
function checkHotpluggable(disk: Disk, bus: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const [drive] = setOf(disk, ['cdrom', 'floppy']);
  if (drive !== undefined) {
    errors.push(forbiddenField(`${path}.${drive}`, 'a hotpluggable volume is only possible as disk or lun'));
  } else if (!(HOTPLUG_BUSES as readonly string[]).includes(bus)) {
    errors.push(invalidValue(`${path}.disk.bus`, bus, "a hotpluggable volume requires bus to be 'scsi' or 'virtio'"));
  }
  if (disk.bootOrder !== undefined) {
    errors.push(forbiddenField(`${path}.bootOrder`, 'a disk with a hotpluggable volume is not booted from'));
  }
  return errors;
}

function checkCounts(disks: readonly Disk[], field: string, chipset: Chipset | undefined): FieldError[] {
  return Object.entries(MOST).flatMap(([bus, most]) => {
    const count = disks.filter((disk) => isPlugged(disk) && busOf(disk, chipset) === bus).length;
    if (count <= most) return [];
    const { message } = tooMany(field, count, most);
    const where = bus === 'fdc' ? 'that are floppies' : `on the bus ${bus}`;
    return [{ reason: 'FieldValueTooMany', field, message: `${message} ${where}` }];
  });
}
