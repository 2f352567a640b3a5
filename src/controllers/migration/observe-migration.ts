/** Observes the world of a migration: from caches, except for the instance if a stale cache could cause harm. */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { findClaimVm } from '#api/storage/claim-vms.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, MIGRATION_UID_LABEL, SYSTEM_NAMESPACE } from '#api/names.ts';
import { stateClaimIn } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfInstance, indexVmsByClaim, listVmsOfClaim } from '#controllers/shared/indexes/claim-keys.ts';
import { INCOMING_BY_MIGRATION, incomingMigrationsOf } from '#controllers/migration/moving-volumes.ts';
import {
  hasBegun,
  isMigrationActive,
  isMigrationFinished,
  isMigrationOf,
  isAnnouncedTo,
  migrationPhaseOf,
  migrationStateOf,
  type StoredMigration,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { isTargetClaimOf } from '#controllers/migration/target-claim.ts';
import { stateIndexKey } from '#controllers/shared/persistent-state/claims-by-state.ts';
import { claimViewsOf } from '#controllers/shared/launcher/claim-views.ts';
import { currentLauncherName } from '#controllers/shared/launcher/find-launchers.ts';
import { targetPodName } from '#controllers/shared/launcher/launcher-pod.ts';
import { isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { findCondition, isTrue } from '#kube/conditions.ts';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  RESOURCE_QUOTAS,
  type Node,
} from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import {
  QUOTAS_BY_NAMESPACE,
  quotaNamespaces,
  resourcePolicyOf,
} from '#controllers/shared/launcher/resource-policy.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

/** Index of unfinished migrations by the key of their instance. */
export const UNFINISHED_BY_INSTANCE = 'unfinished-by-instance';
/** Index of unfinished migrations by the keys of the source and target claims of the state. */
export const UNFINISHED_BY_STATE_CLAIM = 'unfinished-by-state-claim';
/** Index of unfinished migrations by the stateIndexKey of their instance, which has the name of its VM. */
export const UNFINISHED_BY_STATE = 'unfinished-by-state';
/** Index of finished migrations by the key of their instance. */
export const FINISHED_BY_INSTANCE = 'finished-by-instance';
/** Index of active migrations by their source node; all of them also have the key ACTIVE. */
export const ACTIVE_BY_NODE = 'active-by-node';
export const ACTIVE = 'active';
/** Index of active migrations by source and target node. */
export const ACTIVE_BY_EITHER_NODE = 'active-by-either-node';
/** Index of pending migrations. All have the same key: the name of the index. */
export const PENDING = 'pending';

/** Index of all migrations by uid. */
export const MIGRATIONS_BY_UID = 'migration-by-uid';

/** Index of instances by the keys of their claims. */
export const INSTANCES_BY_CLAIM = 'claim';

const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

type Observe = (key: string, options: { signal: AbortSignal }) => Promise<MigrationWorld | undefined>;

export function createMigrationObserver({ client, informer, clock }: ControllerParts): Observe {
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const vms = informer(VIRTUAL_MACHINES);
  const pods = informer(PODS);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  const kubevirts = informer(KUBEVIRTS);
  const quotas = informer(RESOURCE_QUOTAS);
  quotas.addIndex(QUOTAS_BY_NAMESPACE, quotaNamespaces);
  migrations.addIndex(UNFINISHED_BY_INSTANCE, (migration) =>
    isMigrationFinished(migration) ? [] : [instanceKeyOf(migration)],
  );
  migrations.addIndex(UNFINISHED_BY_STATE_CLAIM, (migration) =>
    isMigrationFinished(migration) ? [] : stateClaimKeysOf(migration),
  );
  migrations.addIndex(UNFINISHED_BY_STATE, (migration) =>
    isMigrationFinished(migration) ? [] : [stateKeyOfInstance(migration)],
  );
  migrations.addIndex(FINISHED_BY_INSTANCE, (migration) =>
    isMigrationFinished(migration) ? [instanceKeyOf(migration)] : [],
  );
  migrations.addIndex(ACTIVE_BY_NODE, activeKeysOf);
  migrations.addIndex(ACTIVE_BY_EITHER_NODE, nodesOf);
  migrations.addIndex(PENDING, (migration) => (migrationPhaseOf(migration) === 'Pending' ? [PENDING] : []));
  migrations.addIndex(MIGRATIONS_BY_UID, ({ metadata }) => [metadata.uid]);
  vmis.addIndex(INSTANCES_BY_CLAIM, claimKeysOfInstance);
  indexVmsByClaim(vms);
  volumes.addIndex(INCOMING_BY_MIGRATION, incomingMigrationsOf);
  const readLive = createLiveReader(client);

  async function findInstance(migration: StoredMigration, options: { signal: AbortSignal }) {
    const { namespace, uid } = migration.metadata;
    const name = migration.spec.vmiName ?? '';
    const cached = vmis.get(keyOf({ namespace, name }));
    // A stale cache must not decide that a migration was not announced yet, nor that its instance cannot be migrated.
    const mustReadLive = hasBegun({ migration })
      ? migrationPhaseOf(migration) === 'Scheduled' && !isAnnouncedTo(cached, uid)
      : !isMigratable(cached);
    const vmi = mustReadLive ? await readLive(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, options) : cached;
    return vmi !== undefined && isMigrationOf(migration, vmi) ? vmi : undefined;
  }

  function podsOf(migration: StoredMigration, vmi: Stored<VirtualMachineInstance> | undefined) {
    const { uid, namespace } = migration.metadata;
    const state = migrationStateOf({ migration });
    const podOf = (name: string | undefined) => (name ? pods.get(keyOf({ namespace, name })) : undefined);
    const sourcePod = podOf(state.sourcePod ?? (vmi && currentLauncherName(vmi)));
    const targetPod = podOf(state.targetPod ?? (vmi && targetPodName(vmi, uid)));
    return { sourcePod, targetPod: targetPod?.metadata.labels?.[MIGRATION_UID_LABEL] === uid ? targetPod : undefined };
  }

  function countOtherActive(migration: StoredMigration, node: string | undefined): MigrationWorld['active'] {
    const countOthers = (key: string) =>
      migrations.byIndex(ACTIVE_BY_NODE, key).filter(({ metadata }) => metadata.uid !== migration.metadata.uid).length;
    return { inCluster: countOthers(ACTIVE), fromNode: node === undefined ? 0 : countOthers(nodeKey(node)) };
  }

  const isNodeResponding = (name: string | undefined) => name !== undefined && isResponding(nodes.get(name));

  return async (key, options) => {
    const migration = migrations.get(key);
    if (migration === undefined) return undefined;
    const { namespace, uid } = migration.metadata;
    const instanceKey = instanceKeyOf(migration);
    // A finished migration is only compared with the other finished ones and gets the last progress report.
    const isFinished = isMigrationFinished(migration);
    const vmi = isFinished ? vmis.get(instanceKey) : await findInstance(migration, options);
    const { sourcePod, targetPod } = podsOf(migration, vmi);
    const state = migrationStateOf({ migration });
    const claimOf = (name: string | undefined) => (name ? claims.get(keyOf({ namespace, name })) : undefined);
    const sourceState =
      state.sourcePersistentStatePVCName ??
      (sourcePod === undefined || hasBegun({ migration }) ? undefined : stateClaimIn(sourcePod));
    const sourceNode = state.sourceNode ?? sourcePod?.spec.nodeName;
    return {
      migration,
      vmi,
      vm: vms.get(instanceKey),
      sourcePod,
      targetPod,
      claims:
        vmi === undefined || isFinished
          ? new Map()
          : claimViewsOf(claimNamesOf(vmi.spec), vmi.metadata.namespace, { claims, volumes }),
      sourceClaim: claimOf(sourceState),
      targetClaim: claimOf(state.targetPersistentStatePVCName),
      isClaimNameTaken: (name) => {
        const claim = claimOf(name);
        return claim !== undefined && !isTargetClaimOf(claim, migration);
      },
      otherUserOf: (name) =>
        vmis
          .byIndex(INSTANCES_BY_CLAIM, keyOf({ namespace, name }))
          .find((other) => objectKey(other) !== instanceKey && !isFinalVmiPhase(other.status?.phase))?.metadata.name,
      otherVmOf: (name) =>
        findClaimVm(listVmsOfClaim(vms, keyOf({ namespace, name })), name, vms.get(instanceKey)?.metadata ?? {})
          ?.metadata.name,
      incoming: volumes.byIndex(INCOMING_BY_MIGRATION, uid),
      others: migrations.byIndex(UNFINISHED_BY_INSTANCE, instanceKey).filter(({ metadata }) => metadata.uid !== uid),
      finished: isFinished ? migrations.byIndex(FINISHED_BY_INSTANCE, instanceKey) : [],
      active: countOtherActive(migration, sourceNode),
      settings: configurationOf(kubevirts.get(CONFIGURATION_KEY)).migrations,
      policy: resourcePolicyOf(namespace, { quotas, kubevirts }),
      isSourceResponding: isNodeResponding(sourceNode),
      isTargetResponding: isNodeResponding(state.targetNode),
      now: clock.now(),
    };
  };
}

export function instanceKeyOf({ metadata: { namespace }, spec }: StoredMigration): string {
  return keyOf({ namespace, name: spec.vmiName ?? '' });
}

function stateClaimKeysOf(migration: StoredMigration): string[] {
  const { sourcePersistentStatePVCName: from, targetPersistentStatePVCName: to } = migrationStateOf({ migration });
  const { namespace } = migration.metadata;
  return [from, to].flatMap((name) => (name ? [keyOf({ namespace, name })] : []));
}

function stateKeyOfInstance({ metadata: { namespace }, spec }: StoredMigration): string {
  return stateIndexKey({ namespace, name: spec.vmiName ?? '' });
}

function isMigratable(vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  const { phase, conditions } = vmi?.status ?? {};
  return vmi !== undefined && !isDeleting(vmi) && phase === 'Running' && isTrue(conditions, 'LiveMigratable');
}

/** Returns a key that differs from ACTIVE whatever the name of the node is. */
function nodeKey(node: string): string {
  return `node/${node}`;
}

function activeKeysOf(migration: StoredMigration): string[] {
  if (!isMigrationActive(migration)) return [];
  const node = migration.status?.migrationState?.sourceNode;
  return node === undefined ? [ACTIVE] : [ACTIVE, nodeKey(node)];
}

function nodesOf(migration: StoredMigration): string[] {
  const { sourceNode, targetNode } = migration.status?.migrationState ?? {};
  return isMigrationActive(migration) ? [sourceNode, targetNode].filter((node) => node !== undefined) : [];
}

/** Reports whether the node has reported recently: otherwise Kubernetes sets its condition Ready to Unknown. */
function isResponding(node: Node | undefined): boolean {
  const ready = findCondition(node?.status?.conditions, 'Ready');
  return ready !== undefined && ready.status !== 'Unknown';
}
