/** Whether a VirtualMachineInstance may be stored. Pure; returns everything that is wrong. */
import { checkInstanceSpec } from '#api/validation/instance-rules.ts';
import { checkReservedLabels } from '#api/validation/reserved-labels.ts';
import { unknownFields } from '#api/validation/unknown-fields.ts';
import type { ValidationContext } from '#api/validation/validate-virtual-machine.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { vmiSpec, type VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';
import { labelValueErrors } from '#kube/names.ts';

export interface InstanceContext extends ValidationContext<VirtualMachineInstance> {
  /** One of our own parts asks: it may do what people may not. */
  readonly trusted: boolean;
}

/** What an instance is does not change while it is: only how long it may take to shut down, and only by our own parts. */
export function validateVirtualMachineInstance(
  vmi: VirtualMachineInstance,
  { old, configuration, trusted }: InstanceContext,
): FieldError[] {
  const labels = trusted
    ? []
    : checkReservedLabels(vmi.metadata.labels, old?.metadata.labels, 'metadata.labels', old !== undefined);
  if (old !== undefined) return [...labels, ...checkUpdate(vmi.spec, old.spec, trusted)];
  const name = vmi.metadata.name ?? '';
  const errors = [
    ...labelValueErrors(name).map((text) => invalidValue('metadata.name', name, text)),
    ...labels,
    ...unknownFields(vmiSpec, vmi.spec, 'spec', ''),
  ];
  if (vmi.spec?.domain === undefined) return [...errors, requiredValue('spec.domain')];
  return [...errors, ...checkInstanceSpec(vmi.spec, 'spec', configuration)];
}

function checkUpdate(spec: VmiSpec, old: VmiSpec, trusted: boolean): FieldError[] {
  const allowed = trusted ? { terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds } : {};
  if (deepEqual(spec, { ...old, ...allowed })) return [];
  return [forbiddenField('spec', 'update of VMI object is restricted')];
}
