/**
 * Migrations that agents were told of and that are not over: until they are, nobody knows for sure where the guest of
 * the name is, and which claim has its newest state. They may outlive the instance that they are of.
 */
import {
  isFinalPhase,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf } from '#client/object-key.ts';
import type { Stored } from '#kube/meta.ts';
import { source, type Source } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

/** By the key of their instance. */
const ACTIVE_BY_INSTANCE = 'active-migrations-by-instance';

export interface ActiveMigrations {
  readonly sources: readonly Source[];
  /** `key`: of an instance, whether it is there or not. */
  has(key: string): boolean;
}

export function activeMigrations({ informer }: Pick<ControllerParts, 'informer'>): ActiveMigrations {
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  migrations.addIndex(ACTIVE_BY_INSTANCE, activeKeysOf);
  // They tell of their progress all the time; only who waits to be started wants to know.
  const waiting = (migration: Stored<VirtualMachineInstanceMigration>) =>
    activeKeysOf(migration).filter((key) => isWaiting(vmis.get(key)));
  return {
    sources: [source(migrations, waiting)],
    has: (key) => migrations.byIndex(ACTIVE_BY_INSTANCE, key).length > 0,
  };
}

/** The instance of a migration that agents were told of; none when it is over. Pure. */
export function activeKeysOf({ metadata, spec, status }: Stored<VirtualMachineInstanceMigration>): string[] {
  const isTold = status?.migrationState?.migrationUid === metadata.uid;
  if (!isTold || isFinalPhase(status?.phase) || !spec.vmiName) return [];
  return [keyOf({ namespace: metadata.namespace, name: spec.vmiName })];
}

function isWaiting(vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  return vmi !== undefined && (vmi.status?.phase ?? 'Pending') === 'Pending';
}
