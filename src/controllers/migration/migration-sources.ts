/** What makes the controller of migrations look again, beside changes of the migrations themselves. */
import { APP_LABEL, DOMAIN_ANNOTATION, LAUNCHER_APP } from '#api/names.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { claimKeysOfInstance } from '#controllers/claim-keys.ts';
import { isActive } from '#controllers/migration/migration-world.ts';
import { isFinal } from '#controllers/vmi/phase.ts';
import type { Pod } from '#kube/core-kinds.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import type { Source } from '#runtime/controller.ts';

/** Whenever one is over, another may begin. */
export function freedPlaces(migrations: Informer<VirtualMachineInstanceMigration>, waiting: () => string[]): Source {
  return {
    cache: migrations,
    subscribe: (add) =>
      migrations.onChange((_, { old, new: next }) => {
        if (old === undefined || !isActive(old) || (next !== undefined && isActive(next))) return;
        for (const key of waiting()) add(key);
      }),
  };
}

/** Whenever an instance lets go of its disks, another that shares one may go; a claim may have very many users. */
export function freedDisks(vmis: Informer<VirtualMachineInstance>, unfinished: () => string[]): Source {
  const held = (vmi: Stored<VirtualMachineInstance> | undefined) =>
    vmi === undefined || isFinal(vmi.status?.phase) ? [] : claimKeysOfInstance(vmi);
  return {
    cache: vmis,
    subscribe: (add) =>
      vmis.onChange((_, { old, new: next }) => {
        const kept = new Set(held(next));
        if (held(old).some((key) => !kept.has(key))) for (const key of unfinished()) add(key);
      }),
  };
}

/** What the agent says of a migration when that is over already, as how long the guest stood still. */
export function lastWords(vmis: Informer<VirtualMachineInstance>, keysOf: (migrationUid: string) => string[]): Source {
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

/** Also of one whose owner somebody took away. */
export function instanceKeysOf({ metadata: { namespace, labels, annotations } }: Stored<Pod>): string[] {
  const name = annotations?.[DOMAIN_ANNOTATION];
  return labels?.[APP_LABEL] === LAUNCHER_APP && name !== undefined ? [keyOf({ namespace, name })] : [];
}
