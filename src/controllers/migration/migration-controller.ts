/**
 * VirtualMachineInstanceMigrations: makes a place for the guest at another node, tells the agents of both nodes by the
 * status of the instance, and when they have said where the guest is, sees to it that its state, its disks and its pods
 * are there, too. Who asks for a migration is others' business, but for nodes that are emptied (evacuation.ts).
 */
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/claim-keys.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import { evacuationController } from '#controllers/migration/evacuation-controller.ts';
import {
  ACTIVE,
  ACTIVE_BY_EITHER_NODE,
  ACTIVE_BY_NODE,
  BY_UID,
  INSTANCES_BY_CLAIM,
  migrationObserver,
  PENDING,
  UNFINISHED_BY_INSTANCE,
  UNFINISHED_BY_STATE,
  UNFINISHED_BY_STATE_CLAIM,
} from '#controllers/migration/observe-migration.ts';
import { incomingMigrationsOf } from '#controllers/migration/moving-volumes.ts';
import { RECOVERED } from '#controllers/migration/recovery.ts';
import type { Migration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { freedDisks, freedPlaces, instanceKeysOf, lastWords } from '#controllers/migration/migration-sources.ts';
import { stateIndexKeysOf } from '#controllers/persistent-state/claims-by-state.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from '#kube/core-kinds.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { EventSink } from '#runtime/events.ts';

/** One at a time: two must not both take the last place, nor the same volume. */
const CONCURRENCY = 1;

export const migrationController: PlaneController = {
  account: 'migration-controller',
  eventSource: 'migration-controller',
  start(parts) {
    const events = alsoToldOfInstances(parts.events, parts.informer(VIRTUAL_MACHINE_INSTANCES));
    return [
      startController(definition(parts), { ...parts, events }),
      startController(evacuationController(parts), parts),
    ];
  },
};

function definition(parts: ControllerParts): ControllerDefinition<MigrationWorld> {
  const { informer } = parts;
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const observe = migrationObserver(parts);
  const ofInstance = (key: string) => migrations.byIndex(UNFINISHED_BY_INSTANCE, key).map(objectKey);
  const ofClaim = (key: string) => vmis.byIndex(INSTANCES_BY_CLAIM, key).map(objectKey).flatMap(ofInstance);
  const ofStateClaim = (key: string) => migrations.byIndex(UNFINISHED_BY_STATE_CLAIM, key).map(objectKey);
  /** In the order in which they are to go. */
  const waiting = () => migrations.byIndex(PENDING, PENDING).toSorted(oldestFirst).map(objectKey);

  const unfinished = () => [...waiting(), ...migrations.byIndex(ACTIVE_BY_NODE, ACTIVE).map(objectKey)];

  return defineController<MigrationWorld>({
    name: 'migration-controller',
    type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    concurrency: CONCURRENCY,
    sources: [
      source(migrations),
      freedPlaces(migrations, waiting),
      source(vmis, (vmi) => ofInstance(objectKey(vmi))),
      freedDisks(vmis, unfinished),
      lastWords(vmis, (uid) => migrations.byIndex(BY_UID, uid).map(objectKey)),
      // Instances have the name of their VM.
      source(informer(VIRTUAL_MACHINES), (vm) => ofInstance(objectKey(vm))),
      source(informer(PODS), (pod) => instanceKeysOf(pod).flatMap(ofInstance)),
      source(informer(PERSISTENT_VOLUMES), (volume) => [
        ...claimKeysOfVolume(volume).flatMap(ofClaim),
        ...incomingMigrationsOf(volume).flatMap((uid) => migrations.byIndex(BY_UID, uid).map(objectKey)),
      ]),
      source(informer(PERSISTENT_VOLUME_CLAIMS), (claim) => [
        ...ofClaim(objectKey(claim)),
        ...ofStateClaim(objectKey(claim)),
        // Before it begins: the claim that holds the state now.
        ...stateIndexKeysOf(claim).flatMap((key) => migrations.byIndex(UNFINISHED_BY_STATE, key).map(objectKey)),
      ]),
      source(informer(NODES), ({ metadata }) =>
        migrations.byIndex(ACTIVE_BY_EITHER_NODE, metadata.name).map(objectKey),
      ),
      source(informer(KUBEVIRTS), unfinished),
    ],
    observe,
    decide: decideMigration,
    conclude: concludeMigration,
    subject: ({ migration }) => migration,
  });
}

function oldestFirst({ metadata: a }: Migration, { metadata: b }: Migration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

const OF_INSTANCES: ReadonlySet<string> = new Set([
  'PreparingTarget',
  RECOVERED,
  'SuccessfulMigration',
  'FailedMigration',
]);

/** Who looks at the instance is told, too, where it goes. */
function alsoToldOfInstances(events: EventSink, vmis: Informer<VirtualMachineInstance>): EventSink {
  return {
    record(about, note) {
      events.record(about, note);
      if (about.kind !== VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.kind || !OF_INSTANCES.has(note.reason)) return;
      const { spec, metadata } = about as VirtualMachineInstanceMigration;
      const vmi = vmis.get(keyOf({ namespace: metadata.namespace, name: spec.vmiName ?? '' }));
      if (vmi !== undefined) events.record(vmi, note);
    },
  };
}
