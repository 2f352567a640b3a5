/** Validates a VirtualMachineSnapshot. Pure; returns all errors. */
import { checkImmutableSpec } from '#api/validation/immutable.ts';
import { checkUnknownFields } from '#api/validation/unknown-fields.ts';
import { checkVmReference } from '#api/validation/vm-reference.ts';
import { snapshotSpec, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import { parseGoDuration } from '#kube/go/go-duration.ts';

interface SnapshotContext {
  readonly old?: VirtualMachineSnapshot;
}

export function validateVirtualMachineSnapshot(
  { spec }: VirtualMachineSnapshot,
  { old }: SnapshotContext = {},
): FieldError[] {
  if (old !== undefined) return checkImmutableSpec(spec, old.spec);
  return [
    ...checkUnknownFields(snapshotSpec, spec, 'spec', ''),
    ...checkVmReference(spec.source, 'spec.source'),
    ...checkDeadline(spec.failureDeadline),
  ];
}

function checkDeadline(deadline: string | undefined): FieldError[] {
  if (deadline === undefined) return [];
  const ms = parseGoDuration(deadline);
  if (ms !== undefined && ms >= 0) return [];
  const text = 'must be a duration (e.g. 5m, 1h30m, 90s), or 0 for no deadline';
  return [invalidValue('spec.failureDeadline', deadline, text)];
}
