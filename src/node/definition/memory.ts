/** Defines the memory size of a guest. */
import type { DomainSpec } from '#api/domain/domain.ts';
import { invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';
import { parseQuantity, quantityToNumber } from '#kube/quantity.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';

const MIB = 1024 * 1024;
/** QEMU's TCG loses writes of a migrating guest whose memory is a multiple of 256 KiB (fixed in QEMU 9.0). */
const TCG_SHORTFALL_KIB = 8;

export function defineMemoryKib(domain: DomainSpec, { accelerator }: Capabilities, problems: FieldError[]): number {
  const [field, requested] = requestedMemory(domain);
  if (requested === undefined) {
    problems.push(requiredValue(field, 'the amount of memory for the guest'));
    return 0;
  }
  const mib = Math.floor(quantityToNumber(parseQuantity(String(requested))) / MIB);
  if (mib < 1) problems.push(invalidValue(field, requested, 'must be at least 1Mi'));
  return mib * 1024 - (accelerator === 'tcg' ? TCG_SHORTFALL_KIB : 0);
}

function requestedMemory({ memory, resources }: DomainSpec): [string, string | number | undefined] {
  if (memory?.guest !== undefined) return ['spec.domain.memory.guest', memory.guest];
  const requested = resources?.requests?.['memory'];
  if (requested !== undefined) return ['spec.domain.resources.requests.memory', requested];
  const limit = resources?.limits?.['memory'];
  if (limit !== undefined) return ['spec.domain.resources.limits.memory', limit];
  return ['spec.domain.memory.guest', undefined];
}
