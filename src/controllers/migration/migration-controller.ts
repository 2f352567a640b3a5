/**
 * The controller of VirtualMachineInstanceMigrations. It creates the target pod and claim on another node, announces
 * the migration to the agents of both nodes through the status of the instance and, when the agents have reported where
 * the guest is, moves state, disks and pods accordingly. Users create migrations, except on drained nodes
 * (evacuation.ts).
 */
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstanceMigration,
} from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVm, claimKeysOfVolume, statusClaimKeysOfVm } from '#controllers/shared/indexes/claim-keys.ts';
import type { Stored } from '#kube/meta.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import { evacuationController } from '#controllers/migration/evacuation-controller.ts';
import {
  ACTIVE,
  ACTIVE_BY_EITHER_NODE,
  ACTIVE_BY_NODE,
  FINISHED_BY_INSTANCE,
  MIGRATIONS_BY_UID,
  INSTANCES_BY_CLAIM,
  createMigrationObserver,
  PENDING,
  UNFINISHED_BY_INSTANCE,
  UNFINISHED_BY_STATE,
  UNFINISHED_BY_STATE_CLAIM,
} from '#controllers/migration/observe-migration.ts';
import { incomingMigrationsOf } from '#controllers/migration/moving-volumes.ts';
import { RECOVERED_REASON } from '#controllers/migration/recovery.ts';
import type { StoredMigration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import {
  releasedClaimSource,
  finishedMigrationSource,
  instanceKeysOf,
  progressSource,
} from '#controllers/migration/migration-sources.ts';
import { stateIndexKeysOf } from '#controllers/shared/persistent-state/claims-by-state.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, RESOURCE_QUOTAS } from '#kube/core-kinds.ts';
import {
  type ControllerDefinition,
  defineController,
  presenceOnly,
  source,
  startController,
} from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { EventSink } from '#runtime/events.ts';

/** Migrations are decided one at a time: two must not both take the last free place, nor the same volume. */
const CONCURRENCY = 1;

export const migrationController: PlaneController = {
  account: 'migration-controller',
  eventSource: 'migration-controller',
  start(parts) {
    const events = copyEventsToInstances(parts.events, parts.informer(VIRTUAL_MACHINE_INSTANCES));
    return [
      startController(defineMigrations(parts), { ...parts, events }),
      startController(evacuationController(parts), parts),
    ];
  },
};

function defineMigrations(parts: ControllerParts): ControllerDefinition<MigrationWorld> {
  const { informer } = parts;
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const observe = createMigrationObserver(parts);
  const keysOfInstance = (key: string) => migrations.byIndex(UNFINISHED_BY_INSTANCE, key).map(objectKey);
  const finishedKeysOf = (key: string) => migrations.byIndex(FINISHED_BY_INSTANCE, key).map(objectKey);
  const keysOfClaim = (key: string) => vmis.byIndex(INSTANCES_BY_CLAIM, key).map(objectKey).flatMap(keysOfInstance);
  const keysOfStateClaim = (key: string) => migrations.byIndex(UNFINISHED_BY_STATE_CLAIM, key).map(objectKey);
  /** Returns the pending migrations in the order in which they begin. */
  const pendingKeys = () => migrations.byIndex(PENDING, PENDING).toSorted(oldestFirst).map(objectKey);

  const unfinishedKeys = () => [...pendingKeys(), ...migrations.byIndex(ACTIVE_BY_NODE, ACTIVE).map(objectKey)];

  return defineController<MigrationWorld>({
    name: 'migration-controller',
    type: VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    concurrency: CONCURRENCY,
    sources: [
      source(migrations),
      finishedMigrationSource(migrations, pendingKeys),
      source(vmis, (vmi) => keysOfInstance(objectKey(vmi))),
      releasedClaimSource(vmis, unfinishedKeys),
      progressSource(vmis, (uid) => migrations.byIndex(MIGRATIONS_BY_UID, uid).map(objectKey)),
      // Instances have the name of their VM.
      source(informer(VIRTUAL_MACHINES), (vm) => keysOfInstance(objectKey(vm))),
      // A claim that is a disk or the state of another VM is not deleted.
      source(informer(VIRTUAL_MACHINES), (vm) => claimKeysNamedBy(vm).flatMap(keysOfStateClaim), {
        part: claimKeysNamedBy,
      }),
      // Finished migrations are removed with their VM.
      source(vmis, (vmi) => finishedKeysOf(objectKey(vmi)), { part: presenceOnly }),
      source(informer(VIRTUAL_MACHINES), (vm) => finishedKeysOf(objectKey(vm)), { part: presenceOnly }),
      source(informer(PODS), (pod) => instanceKeysOf(pod).flatMap(keysOfInstance)),
      source(informer(PERSISTENT_VOLUMES), (volume) => [
        ...claimKeysOfVolume(volume).flatMap(keysOfClaim),
        ...incomingMigrationsOf(volume).flatMap((uid) => migrations.byIndex(MIGRATIONS_BY_UID, uid).map(objectKey)),
      ]),
      source(informer(PERSISTENT_VOLUME_CLAIMS), (claim) => [
        ...keysOfClaim(objectKey(claim)),
        ...keysOfStateClaim(objectKey(claim)),
        // Before the migration begins, it depends on the claim that holds the state of its VM.
        ...stateIndexKeysOf(claim).flatMap((key) => migrations.byIndex(UNFINISHED_BY_STATE, key).map(objectKey)),
      ]),
      source(informer(NODES), ({ metadata }) =>
        migrations.byIndex(ACTIVE_BY_EITHER_NODE, metadata.name).map(objectKey),
      ),
      source(informer(KUBEVIRTS), unfinishedKeys),
      // A quota decides about the limits of target pods, and its use about whether they can be created.
      source(informer(RESOURCE_QUOTAS), unfinishedKeys),
    ],
    observe,
    decide: decideMigration,
    conclude: concludeMigration,
    subject: ({ migration }) => migration,
  });
}

/** Returns the keys of the claims in the template and the status of the VM. */
function claimKeysNamedBy(vm: Stored<VirtualMachine>): string[] {
  return [...claimKeysOfVm(vm), ...statusClaimKeysOfVm(vm)];
}

function oldestFirst({ metadata: a }: StoredMigration, { metadata: b }: StoredMigration): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

const INSTANCE_EVENT_REASONS: ReadonlySet<string> = new Set([
  'PreparingTarget',
  RECOVERED_REASON,
  'SuccessfulMigration',
  'FailedMigration',
]);

/** Returns a sink that also records the important Events of a migration on its instance, where users look first. */
function copyEventsToInstances(events: EventSink, vmis: Informer<VirtualMachineInstance>): EventSink {
  return {
    record(about, note) {
      events.record(about, note);
      if (about.kind !== VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.kind || !INSTANCE_EVENT_REASONS.has(note.reason)) return;
      const { spec, metadata } = about as VirtualMachineInstanceMigration;
      const vmi = vmis.get(keyOf({ namespace: metadata.namespace, name: spec.vmiName ?? '' }));
      if (vmi !== undefined) events.record(vmi, note);
    },
  };
}
