/** Validates a VirtualMachineRestore. Pure; returns all errors. */
import { checkImmutableSpec } from '#api/validation/immutable.ts';
import { checkAnnotationMap, checkLabelMap } from '#api/validation/spec/placement.ts';
import { checkPatches } from '#api/validation/restore-patches.ts';
import { checkUnknownFields } from '#api/validation/unknown-fields.ts';
import { checkObjectName, checkVmReference } from '#api/validation/vm-reference.ts';
import { restoreSpec, type RestoreSpec, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { duplicateValue, forbiddenField, requiredValue, tooMany, type FieldError } from '#kube/field-error.ts';

interface RestoreContext {
  readonly old?: VirtualMachineRestore;
  /** Unfinished restores of the same target. */
  readonly unfinished: readonly { readonly name: string }[];
}

/** No VM has more disks. */
const MAX_OVERRIDES = 100;

export function validateVirtualMachineRestore(
  { metadata, spec }: VirtualMachineRestore,
  { old, unfinished }: RestoreContext,
): FieldError[] {
  if (old !== undefined) return checkImmutableSpec(spec, old.spec);
  const other = unfinished.find(({ name }) => name !== metadata.name);
  return [
    ...checkUnknownFields(restoreSpec, spec, 'spec', ''),
    ...checkVmReference(spec.target, 'spec.target'),
    ...checkObjectName(spec.virtualMachineSnapshotName, 'spec.virtualMachineSnapshotName'),
    ...checkOverrides(spec.volumeRestoreOverrides ?? [], 'spec.volumeRestoreOverrides'),
    ...checkPatches(spec.patches ?? [], 'spec.patches'),
    ...(other === undefined
      ? []
      : [forbiddenField('spec.target', `VirtualMachineRestore "${other.name}" in progress`)]),
  ];
}

/** Checks that volumes and claims are unique. */
function checkOverrides(overrides: NonNullable<RestoreSpec['volumeRestoreOverrides']>, path: string): FieldError[] {
  if (overrides.length > MAX_OVERRIDES) return [tooMany(path, overrides.length, MAX_OVERRIDES)];
  const volumes = new Set<string>();
  const claims = new Set<string>();
  return overrides.flatMap(({ volumeName, restoreName, labels, annotations }, i) => {
    const at = `${path}[${i}]`;
    const errors = [
      ...(volumeName === '' ? [requiredValue(`${at}.volumeName`)] : []),
      ...(volumes.has(volumeName) ? [duplicateValue(`${at}.volumeName`, volumeName)] : []),
      ...(restoreName ? checkObjectName(restoreName, `${at}.restoreName`) : []),
      ...(restoreName && claims.has(restoreName) ? [duplicateValue(`${at}.restoreName`, restoreName)] : []),
      ...checkLabelMap(labels, `${at}.labels`),
      ...checkAnnotationMap(annotations, `${at}.annotations`),
    ];
    volumes.add(volumeName);
    if (restoreName) claims.add(restoreName);
    return errors;
  });
}
