import type { Configuration } from '#api/kubevirt/configuration.ts';
import { matchesAny } from '#api/validation/glob.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';

/** The type becomes part of node labels and of a QEMU option. */
const MACHINE_TYPE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;

/** An empty type is allowed: it is filled in when the VM starts. */
export function checkMachine({ domain }: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  const type = domain.machine?.type;
  if (type === undefined || type === null || type === '') return [];
  return checkMachineType(type, `${path}.domain.machine.type`, configuration);
}

export function isMachineTypeName(text: string): boolean {
  return MACHINE_TYPE.test(text);
}

export function checkMachineType(type: string, field: string, configuration: Configuration): FieldError[] {
  const { emulatedMachines } = configuration;
  if (isMachineTypeName(type) && matchesAny(emulatedMachines, type)) return [];
  const allowed = emulatedMachines.join(' ');
  return [invalidValue(field, type, `${field} is not supported: ${type} (allowed values: [${allowed}])`)];
}
