import { vcpusOf } from '#api/domain/cpu.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, invalidValue, type FieldError } from '#kube/field-error.ts';

/** Limit of a q35 machine without interrupt remapping. */
const MAX_VCPUS = 255;
const MODEL = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;

export function checkCpu({ domain }: VmiSpec, path: string): FieldError[] {
  const field = `${path}.domain.cpu`;
  const { model } = domain.cpu ?? {};
  const vcpus = vcpusOf(domain);
  const errors: FieldError[] = [];
  if (vcpus > MAX_VCPUS) {
    errors.push(invalidValue(field, vcpus, `sockets * cores * threads must be at most ${MAX_VCPUS}`));
  }
  // The model becomes part of a QEMU option, in which a comma would begin the next property.
  if (model !== undefined && model !== '' && !MODEL.test(model)) {
    errors.push(
      invalidValue(`${field}.model`, model, 'must be host-model, host-passthrough or the name of a CPU model'),
    );
  }
  const seen = new Set<string>();
  for (const [i, { name }] of (domain.cpu?.features ?? []).entries()) {
    if (seen.has(name)) errors.push(duplicateValue(`${field}.features[${i}].name`, name));
    seen.add(name);
  }
  return errors;
}
