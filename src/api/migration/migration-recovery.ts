/**
 * Manual recovery of a migration: if no node can report where the guest is, an administrator decides with an
 * annotation, which counts only while the migration asks for it. The administrator must make sure that the other node
 * does not run the guest. Pure.
 */
import { MANUAL_RECOVERY_CONDITION, RECOVERY_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { forbiddenField, unsupportedValue, type FieldError } from '#kube/field-error.ts';

type Migration = Pick<VirtualMachineInstanceMigration, 'metadata' | 'status'>;

/** The node that has the guest. */
const RECOVERIES = ['source', 'target'] as const;
type Recovery = (typeof RECOVERIES)[number];

/** Returns the decision of the administrator, if the migration asks for one. */
export function readRecovery(migration: Migration): Recovery | undefined {
  const isRequested = isTrue(migration.status?.conditions, MANUAL_RECOVERY_CONDITION);
  return isRequested ? RECOVERIES.find((one) => one === annotationOf(migration)) : undefined;
}

/** Removing the annotation and leaving it unchanged are always allowed. */
export function checkRecovery(migration: Migration, old: Migration | undefined): FieldError[] {
  const value = annotationOf(migration);
  if (value === undefined || value === (old && annotationOf(old))) return [];
  const field = `metadata.annotations[${RECOVERY_ANNOTATION}]`;
  if (!isTrue(old?.status?.conditions, MANUAL_RECOVERY_CONDITION)) {
    return [forbiddenField(field, `may be set only while the condition ${MANUAL_RECOVERY_CONDITION} is True`)];
  }
  return RECOVERIES.some((one) => one === value) ? [] : [unsupportedValue(field, value, RECOVERIES)];
}

function annotationOf({ metadata }: Migration): string | undefined {
  return metadata.annotations?.[RECOVERY_ANNOTATION];
}
