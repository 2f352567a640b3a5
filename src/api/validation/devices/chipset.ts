/** Checks buses and firmware that exist on one chipset only. */
import type { Chipset } from '#api/devices/chipset.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { chipsetOfSpec } from '#api/validation/devices/chipset-of-spec.ts';
import { busOf } from '#api/devices/disk-bus.ts';
import { checkMachine } from '#api/validation/spec/machine.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';

interface Requirement {
  readonly chipset: Chipset;
  /** The alternative on the other chipset. */
  readonly instead: string;
}

const BUSES: ReadonlyMap<string, Requirement> = new Map([
  ['ide', { chipset: 'i440fx', instead: 'virtio, scsi or sata' }],
  ['fdc', { chipset: 'i440fx', instead: 'a disk or a cdrom' }],
  ['sata', { chipset: 'q35', instead: 'ide, scsi, or virtio for disks' }],
]);

export function checkChipset(spec: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  const chipset = chipsetOfSpec(spec, configuration);
  // A machine type that is not allowed has its own error; further ones would only confuse.
  if (chipset === undefined || checkMachine(spec, path, configuration).length > 0) return [];
  const { disks = [] } = spec.domain.devices ?? {};
  const field = `${path}.domain.devices`;
  const errors: FieldError[] = [];
  for (const [i, disk] of disks.entries()) {
    const bus = busOf(disk, chipset);
    const text = describeMissingBus(BUSES.get(bus), chipset);
    if (text === undefined) continue;
    const at = `${field}.disks[${i}]`;
    if (disk.floppy !== undefined) errors.push(forbiddenField(`${at}.floppy`, text));
    else errors.push(invalidValue(`${at}.${disk.cdrom === undefined ? 'disk' : 'cdrom'}.bus`, bus, text));
  }
  return [...errors, ...checkSecureBoot(spec, path, chipset)];
}

function describeMissingBus(requirement: Requirement | undefined, chipset: Chipset): string | undefined {
  if (requirement === undefined || requirement.chipset === chipset) return undefined;
  return `only possible with machine types of the chipset ${requirement.chipset}, and this one is of ${chipset}; use ${requirement.instead}`;
}

/** OVMF protects its variables with SMM on q35 only. */
function checkSecureBoot({ domain }: VmiSpec, path: string, chipset: Chipset): FieldError[] {
  const efi = domain.firmware?.bootloader?.efi;
  if (chipset === 'q35' || efi === undefined || efi.secureBoot === false) return [];
  const text = 'SecureBoot is only possible with machine types of the chipset q35; set it to false';
  return [invalidValue(`${path}.domain.firmware.bootloader.efi.secureBoot`, efi.secureBoot ?? true, text)];
}
