/**
 * Finds active migrations: node agents know of them, and they are not over. Meanwhile it is not certain on which node
 * the guest is and which claim has its newest state. A migration may outlive its instance.
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

/** The name of an index: active migrations by the key of their instance. */
const ACTIVE_BY_INSTANCE = 'active-migrations-by-instance';

interface ActiveMigrations {
  readonly sources: readonly Source[];
  /** Reports whether an instance of this key, which may be gone, has an active migration. */
  has(key: string): boolean;
}

export function observeActiveMigrations({ informer }: Pick<ControllerParts, 'informer'>): ActiveMigrations {
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  migrations.addIndex(ACTIVE_BY_INSTANCE, instanceKeysOfActive);
  // Migrations report progress often; only an instance that is not started yet depends on them.
  const pendingInstances = (migration: Stored<VirtualMachineInstanceMigration>) =>
    instanceKeysOfActive(migration).filter((key) => isPending(vmis.get(key)));
  return {
    sources: [source(migrations, pendingInstances)],
    has: (key) => migrations.byIndex(ACTIVE_BY_INSTANCE, key).length > 0,
  };
}

/** Returns the key of the instance if the migration is active, otherwise nothing. Pure. */
export function instanceKeysOfActive({ metadata, spec, status }: Stored<VirtualMachineInstanceMigration>): string[] {
  const isAnnounced = status?.migrationState?.migrationUid === metadata.uid;
  if (!isAnnounced || isFinalPhase(status?.phase) || !spec.vmiName) return [];
  return [keyOf({ namespace: metadata.namespace, name: spec.vmiName })];
}

function isPending(vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  return vmi !== undefined && (vmi.status?.phase ?? 'Pending') === 'Pending';
}
