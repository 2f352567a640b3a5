/** Checks the memory of a guest and the resources for the scheduler. */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { invalidValue, requiredValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';
import { parseQuantity, findQuantityError } from '#kube/quantity.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

const MIB = 2n ** 20n;
const NANOS = 10n ** 9n;
/** Measured: with 64 MiB, SeaBIOS cannot boot a kernel; OVMF needs more. */
const MIN_MIB = 72n;
const MIN_EFI_MIB = 160n;
/** Limit of q35 with 40 address bits, which every CPU model has. */
const MAX_MIB = 2n ** 20n - 2n ** 12n;

const RESOURCES = ['cpu', 'memory'];

export function checkMemory({ domain }: VmiSpec, path: string): FieldError[] {
  const { memory, resources, firmware } = domain;
  const errors = checkResources(domain.resources, `${path}.domain.resources`);
  const [field, size] =
    memory?.guest === undefined
      ? [`${path}.domain.resources.requests[memory]`, resources?.requests?.['memory'] ?? resources?.limits?.['memory']]
      : [`${path}.domain.memory.guest`, memory.guest];
  if (size === undefined) {
    const text = 'set memory.guest or resources.requests.memory';
    return [...errors, requiredValue(`${path}.domain.memory.guest`, text)];
  }
  const nanos = nanosOf(size);
  if (nanos === undefined) return errors;
  const efi = firmware?.bootloader?.efi !== undefined;
  const min = efi ? MIN_EFI_MIB : MIN_MIB;
  if (nanos < min * MIB * NANOS) {
    errors.push(invalidValue(field, size, `must be at least ${min}Mi, or ${efi ? 'EFI' : 'the BIOS'} cannot boot`));
  }
  if (nanos > MAX_MIB * MIB * NANOS) errors.push(invalidValue(field, size, `must be at most ${MAX_MIB}Mi`));
  const limit = nanosOf(resources?.limits?.['memory']);
  if (memory?.guest !== undefined && limit !== undefined && nanos > limit) {
    errors.push(invalidValue(field, size, 'must be less than or equal to memory limit'));
  }
  return errors;
}

function checkResources(resources: VmiSpec['domain']['resources'], path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const part of ['requests', 'limits'] as const) {
    for (const [name, size] of Object.entries(resources?.[part] ?? {})) {
      const field = `${path}.${part}[${name}]`;
      if (!RESOURCES.includes(name)) errors.push(unsupportedValue(field, name, RESOURCES));
      else if ((nanosOf(size) ?? 0n) < 0n) {
        errors.push(invalidValue(field, size, 'must be greater than or equal to 0'));
      }
    }
  }
  for (const name of RESOURCES) {
    const [request, limit] = [resources?.requests?.[name], resources?.limits?.[name]];
    if ((nanosOf(request) ?? 0n) > (nanosOf(limit) ?? nanosOf(request) ?? 0n)) {
      const text = `must be less than or equal to ${name} limit of ${limit}`;
      errors.push(invalidValue(`${path}.requests[${name}]`, request, text));
    }
  }
  return errors;
}

/** Returns undefined for invalid quantities; unknown-fields.ts reports them. */
function nanosOf(size: IntOrString | undefined): bigint | undefined {
  return size === undefined || findQuantityError(size) !== undefined ? undefined : parseQuantity(String(size)).nanos;
}
