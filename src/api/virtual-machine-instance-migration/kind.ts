/**
 * A migration of a running instance to another node. Deleting an unfinished migration cancels it.
 *
 *   Pending ─► Scheduling ─► Scheduled ─► PreparingTarget ─► TargetReady ─► Running ─► Succeeded
 *      └───────────┴─────────────┴──────────────┴────────────────┴────────────┴──────► Failed: the guest stays on the source
 */
import { conditionSchema } from '#api/custom-kinds/condition.ts';
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { migrationProgressSchema, migrationStateSchema } from '#api/migration/migration-state.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { list, map, obj, oneOf, str, time, type Infer } from '#kube/schema-dsl.ts';

export const MIGRATION_PHASES = [
  'Pending',
  'Scheduling',
  'Scheduled',
  'PreparingTarget',
  'TargetReady',
  'Running',
  'Succeeded',
  'Failed',
] as const;
export type MigrationPhase = (typeof MIGRATION_PHASES)[number];

export const migrationSpec = obj(
  {
    vmiName: str({ maxLength: 253, description: 'The name of the instance, in the same namespace.' }),
    addedNodeSelector: map(str(), {
      description: 'Labels that the target node must have, in addition to the node selector of the instance.',
    }),
  },
  { description: 'The instance to migrate.' },
);

/** Written by controllers/migration. */
const migrationStatus = obj({
  phase: oneOf(MIGRATION_PHASES),
  message: str({ description: 'The reason for waiting or for the failure.' }),
  phaseTransitionTimestamps: list(obj({ phase: str(), phaseTransitionTimestamp: time() })),
  conditions: list(conditionSchema),
  progress: str({ description: 'The part of memory and mirrored disks that is on the target: 45%.' }),
  migrationState: migrationStateSchema,
  migrationProgress: migrationProgressSchema,
});
export type MigrationStatus = Infer<typeof migrationStatus>;

export interface VirtualMachineInstanceMigration extends KubeObject {
  spec: Infer<typeof migrationSpec>;
  status?: MigrationStatus;
}

export const VIRTUAL_MACHINE_INSTANCE_MIGRATIONS: ResourceType<VirtualMachineInstanceMigration> = {
  group: KUBEVIRT_GROUP,
  version: 'v1',
  kind: 'VirtualMachineInstanceMigration',
  plural: 'virtualmachineinstancemigrations',
  namespaced: true,
};

export const virtualMachineInstanceMigration: CustomKind<VirtualMachineInstanceMigration> = {
  type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  singular: 'virtualmachineinstancemigration',
  shortNames: ['vmim', 'vmims'],
  categories: ['all'],
  description: 'A migration of a running virtual machine to another node.',
  spec: migrationSpec,
  status: migrationStatus,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'VMI', type: 'string', jsonPath: '.spec.vmiName' },
    { name: 'Source', type: 'string', jsonPath: '.status.migrationState.sourceNode' },
    { name: 'Target', type: 'string', jsonPath: '.status.migrationState.targetNode' },
    { name: 'Progress', type: 'string', jsonPath: '.status.progress' },
    { name: 'Downtime', type: 'string', jsonPath: '.status.migrationProgress.downtimeMs', wide: true },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};

export function isFinalPhase(phase: MigrationPhase | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}
