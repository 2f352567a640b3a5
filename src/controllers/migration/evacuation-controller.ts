/** The controller of instances that have to leave their node (evacuation.ts). */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { decideEvacuation, isEvacuating, type EvacuationWorld } from '#controllers/migration/evacuation.ts';
import { isMigrationFinished } from '#controllers/migration/migration-world.ts';
import { instanceKeyOf } from '#controllers/migration/observe-migration.ts';
import { type ControllerDefinition, defineController, source } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

/** Index of all migrations, finished ones included, by the key of their instance. */
const BY_INSTANCE = 'migrations-by-instance';
/** Index of the instances that have to leave their node. All have the same key: the name of the index. */
const EVACUATING = 'evacuating';
const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

export function evacuationController({
  informer,
  clock,
}: Pick<ControllerParts, 'informer' | 'clock'>): ControllerDefinition<EvacuationWorld> {
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const kubevirts = informer(KUBEVIRTS);
  vmis.addIndex(EVACUATING, (vmi) => (isEvacuating(vmi) ? [EVACUATING] : []));
  migrations.addIndex(BY_INSTANCE, (migration) => [instanceKeyOf(migration)]);
  return defineController<EvacuationWorld>({
    name: 'evacuation-controller',
    type: VIRTUAL_MACHINE_INSTANCES,
    sources: [
      source(vmis, (vmi) => (isEvacuating(vmi) ? [objectKey(vmi)] : [])),
      source(migrations, (migration) => (isMigrationFinished(migration) ? [instanceKeyOf(migration)] : [])),
      source(kubevirts, () => vmis.byIndex(EVACUATING, EVACUATING).map(objectKey)),
    ],
    observe(key) {
      const vmi = vmis.get(key);
      if (vmi === undefined || !isEvacuating(vmi)) return undefined;
      const defaultStrategy = configurationOf(kubevirts.get(CONFIGURATION_KEY)).evictionStrategy;
      return { vmi, migrations: migrations.byIndex(BY_INSTANCE, key), defaultStrategy, now: clock.now() };
    },
    decide: decideEvacuation,
    subject: ({ vmi }) => vmi,
  });
}
