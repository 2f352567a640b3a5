/**
 * Validates a VirtualMachineInstanceMigration. Pure; returns all errors of the object itself. findMigrationRefusal then
 * decides whether its instance can be migrated now.
 */
import { checkRecovery } from '#api/migration/migration-recovery.ts';
import { checkLabelMap } from '#api/validation/spec/placement.ts';
import { checkUnknownFields } from '#api/validation/unknown-fields.ts';
import { migrationSpec, type VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { findCondition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, requiredValue, type FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';

interface MigrationContext {
  readonly old?: VirtualMachineInstanceMigration | undefined;
}

export function validateVirtualMachineInstanceMigration(
  migration: VirtualMachineInstanceMigration,
  { old }: MigrationContext = {},
): FieldError[] {
  const { spec } = migration;
  const recovery = checkRecovery(migration, old);
  if (old !== undefined) {
    const isSame = deepEqual(spec, old.spec);
    return [
      ...(isSame ? [] : [forbiddenField('spec', "update of Migration object's spec is restricted")]),
      ...recovery,
    ];
  }
  return [
    ...recovery,
    ...(spec.vmiName ? [] : [requiredValue('spec.vmiName', 'vmiName is missing')]),
    ...checkUnknownFields(migrationSpec, spec, 'spec', ''),
    ...checkLabelMap(spec.addedNodeSelector, 'spec.addedNodeSelector'),
  ];
}

interface MigrationRefusalWorld {
  readonly vmi: Pick<VirtualMachineInstance, 'status'> | undefined;
  /** Unfinished migrations of the instance. */
  readonly active: readonly Stored<VirtualMachineInstanceMigration>[];
}

/** Returns why the instance cannot be migrated now, with KubeVirt's message, or undefined if it can. */
export function findMigrationRefusal(
  { metadata, spec: { vmiName = '' } }: VirtualMachineInstanceMigration,
  { vmi, active }: MigrationRefusalWorld,
): string | undefined {
  if (vmi === undefined) return `the VMI "${metadata.namespace ?? ''}/${vmiName}" does not exist`;
  if (isFinal(vmi)) return 'Cannot migrate VMI in finalized state.';
  const migratable = findCondition(vmi.status?.conditions, 'LiveMigratable');
  if (migratable?.status === 'False') {
    return `Cannot migrate VMI, Reason: ${migratable.reason ?? ''}, Message: ${migratable.message ?? ''}`;
  }
  const [other] = active;
  if (other === undefined) return undefined;
  return `in-flight migration detected. Active migration job (${other.metadata.uid}) is currently already in progress for VMI ${vmiName}.`;
}
