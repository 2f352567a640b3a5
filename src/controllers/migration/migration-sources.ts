/** Sources that trigger reconciles of migrations, besides changes of the migrations themselves. */
import { APP_LABEL, DOMAIN_ANNOTATION, LAUNCHER_APP } from '#api/names.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { claimKeysOfInstance } from '#controllers/shared/indexes/claim-keys.ts';
import { isMigrationActive } from '#controllers/migration/migration-world.ts';
import { isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import type { Pod } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Source } from '#runtime/controller.ts';

/** Triggers the waiting migrations when another one has finished and another may begin. */
export function finishedMigrationSource(
  migrations: Informer<VirtualMachineInstanceMigration>,
  pendingKeys: () => string[],
): Source {
  return {
    cache: migrations,
    subscribe: (add) =>
      migrations.onChange((_, { old, new: next }) => {
        if (old === undefined || !isMigrationActive(old) || (next !== undefined && isMigrationActive(next))) return;
        for (const key of pendingKeys()) add(key);
      }),
  };
}

/**
 * Triggers all unfinished migrations when an instance releases claims, because an instance that shares one may then be
 * migrated. They are not looked up by claim: a claim may have very many users.
 */
export function releasedClaimSource(vmis: Informer<VirtualMachineInstance>, unfinishedKeys: () => string[]): Source {
  const held = (vmi: Stored<VirtualMachineInstance> | undefined) =>
    vmi === undefined || isFinalVmiPhase(vmi.status?.phase) ? [] : claimKeysOfInstance(vmi);
  return {
    cache: vmis,
    subscribe: (add) =>
      vmis.onChange((_, { old, new: next }) => {
        const stillHeld = new Set(held(next));
        if (held(old).some((key) => !stillHeld.has(key))) for (const key of unfinishedKeys()) add(key);
      }),
  };
}

/** Triggers a migration when the agent reports progress, also after its end: the downtime of the guest comes last. */
export function progressSource(
  vmis: Informer<VirtualMachineInstance>,
  keysOf: (migrationUid: string) => string[],
): Source {
  return {
    cache: vmis,
    subscribe: (add) =>
      vmis.onChange((_, { old, new: next }) => {
        const progress = next?.status?.migrationProgress;
        if (progress === undefined || deepEqual(progress, old?.status?.migrationProgress)) return;
        for (const key of keysOf(progress.migrationUid)) add(key);
      }),
  };
}

/** Returns the instance of a launcher pod. Uses labels, so that it also works without an owner reference. */
export function instanceKeysOf({ metadata: { namespace, labels, annotations } }: Stored<Pod>): string[] {
  const name = annotations?.[DOMAIN_ANNOTATION];
  return labels?.[APP_LABEL] === LAUNCHER_APP && name !== undefined ? [keyOf({ namespace, name })] : [];
}
