/** What only one chipset has is refused with the other: buses, models, and what the firmware needs. */
import type { Chipset } from '#api/chipset.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { chipsetOfSpec } from '#api/validation/chipset-of-spec.ts';
import { busOf } from '#api/disk-bus.ts';
import { checkMachine } from '#api/validation/machine.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

interface Need {
  readonly chipset: Chipset;
  /** What the other one has. */
  readonly instead: string;
}

const BUSES: ReadonlyMap<string, Need> = new Map([
  ['ide', { chipset: 'i440fx', instead: 'virtio, scsi or sata' }],
  ['fdc', { chipset: 'i440fx', instead: 'a disk or a cdrom' }],
  ['sata', { chipset: 'q35', instead: 'ide, scsi, or virtio for disks' }],
]);

export function checkChipset(spec: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  const chipset = chipsetOfSpec(spec, configuration);
  // A machine type that nobody may have is refused as such; what would go with it does not matter.
  if (chipset === undefined || checkMachine(spec, path, configuration).length > 0) return [];
  const { disks = [] } = spec.domain.devices ?? {};
  const field = `${path}.domain.devices`;
  const errors: FieldError[] = [];
  for (const [i, disk] of disks.entries()) {
    const bus = busOf(disk, chipset);
    const text = missing(BUSES.get(bus), chipset);
    if (text === undefined) continue;
    const at = `${field}.disks[${i}]`;
    if (disk.floppy !== undefined) errors.push(forbiddenField(`${at}.floppy`, text));
    else errors.push(invalidValue(`${at}.${disk.cdrom === undefined ? 'disk' : 'cdrom'}.bus`, bus, text));
  }
  return [...errors, ...checkSecureBoot(spec, path, chipset)];
}

function missing(need: Need | undefined, chipset: Chipset): string | undefined {
  if (need === undefined || need.chipset === chipset) return undefined;
  return `only possible with machine types of the chipset ${need.chipset}, and this one is of ${chipset}; use ${need.instead}`;
}

/** OVMF guards its variables by SMM on q35 only. */
function checkSecureBoot({ domain }: VmiSpec, path: string, chipset: Chipset): FieldError[] {
  const efi = domain.firmware?.bootloader?.efi;
  if (chipset === 'q35' || efi === undefined || efi.secureBoot === false) return [];
  const text = 'SecureBoot is only possible with machine types of the chipset q35; set it to false';
  return [invalidValue(`${path}.domain.firmware.bootloader.efi.secureBoot`, efi.secureBoot ?? true, text)];
}
