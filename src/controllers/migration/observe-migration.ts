/** Reads the world of a migration: from caches, but for one look at the instance itself where a lagging one could harm. */
import { claimNamesOf } from '#api/claim-names.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, MIGRATION_UID_LABEL, SYSTEM_NAMESPACE } from '#api/names.ts';
import { stateClaimIn } from '#api/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfInstance } from '#controllers/claim-keys.ts';
import { INCOMING_BY_MIGRATION, incomingMigrationsOf } from '#controllers/migration/moving-volumes.ts';
import {
  hasBegun,
  isActive,
  isFinished,
  isOf,
  isToldTo,
  phaseOf,
  recordOf,
  type Migration,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { isTargetClaimOf } from '#controllers/migration/target-claim.ts';
import { stateIndexKey } from '#controllers/persistent-state/claims-by-state.ts';
import { currentLauncherName } from '#controllers/vmi/launcher-of.ts';
import { targetPodName } from '#controllers/vmi/launcher-pod.ts';
import { isFinal } from '#controllers/vmi/phase.ts';
import type { ClaimView } from '#controllers/vmi/vmi-world.ts';
import { findCondition, isTrue } from '#kube/conditions.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, type Node } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { liveLook } from '#runtime/live-look.ts';

/** Migrations by the key of their instance. */
export const UNFINISHED_BY_INSTANCE = 'unfinished-by-instance';
/** Unfinished ones by the key of each claim that holds the state of their instance, or is to hold it. */
export const UNFINISHED_BY_STATE_CLAIM = 'unfinished-by-state-claim';
/** Unfinished ones by what stateIndexKey gives for their instance, which has the name of its VM. */
export const UNFINISHED_BY_STATE = 'unfinished-by-state';
const FINISHED_BY_INSTANCE = 'finished-by-instance';
/** Those that take a place, by the node of their guest; and all of them, by the word itself. */
export const ACTIVE_BY_NODE = 'active-by-node';
export const ACTIVE = 'active';
/** Those that take a place, by each of the two nodes. */
export const ACTIVE_BY_EITHER_NODE = 'active-by-either-node';
/** Those that wait for their turn, by the word itself. */
export const PENDING = 'pending';

/** All of them, by their uid. */
export const BY_UID = 'migration-by-uid';

/** Instances by the key of each claim that they name. */
export const INSTANCES_BY_CLAIM = 'claim';

const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

type Observe = (key: string, options: { signal: AbortSignal }) => Promise<MigrationWorld | undefined>;

export function migrationObserver({ client, informer, clock }: ControllerParts): Observe {
  const migrations = informer(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const vms = informer(VIRTUAL_MACHINES);
  const pods = informer(PODS);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  const kubevirts = informer(KUBEVIRTS);
  migrations.addIndex(UNFINISHED_BY_INSTANCE, (migration) => (isFinished(migration) ? [] : [instanceKeyOf(migration)]));
  migrations.addIndex(UNFINISHED_BY_STATE_CLAIM, (migration) =>
    isFinished(migration) ? [] : stateClaimKeysOf(migration),
  );
  migrations.addIndex(UNFINISHED_BY_STATE, (migration) =>
    isFinished(migration) ? [] : [stateKeyOfInstance(migration)],
  );
  migrations.addIndex(FINISHED_BY_INSTANCE, (migration) => (isFinished(migration) ? [instanceKeyOf(migration)] : []));
  migrations.addIndex(ACTIVE_BY_NODE, activeKeysOf);
  migrations.addIndex(ACTIVE_BY_EITHER_NODE, nodesOf);
  migrations.addIndex(PENDING, (migration) => (phaseOf(migration) === 'Pending' ? [PENDING] : []));
  migrations.addIndex(BY_UID, ({ metadata }) => [metadata.uid]);
  vmis.addIndex(INSTANCES_BY_CLAIM, claimKeysOfInstance);
  volumes.addIndex(INCOMING_BY_MIGRATION, incomingMigrationsOf);
  const look = liveLook(client);

  async function instanceOf(migration: Migration, options: { signal: AbortSignal }) {
    const { namespace, uid } = migration.metadata;
    const name = migration.spec.vmiName ?? '';
    const cached = vmis.get(keyOf({ namespace, name }));
    // It was about to be told: that nobody was, is too much to believe a cache. So is that there is nothing to migrate.
    const isUnsure = hasBegun({ migration })
      ? phaseOf(migration) === 'Scheduled' && !isToldTo(cached, uid)
      : !isFit(cached);
    const vmi = isUnsure ? await look(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, options) : cached;
    return vmi !== undefined && isOf(migration, vmi) ? vmi : undefined;
  }

  function claimsOf(vmi: Stored<VirtualMachineInstance>): Map<string, ClaimView> {
    const views = new Map<string, ClaimView>();
    for (const name of claimNamesOf(vmi.spec)) {
      const claim = claims.get(keyOf({ namespace: vmi.metadata.namespace, name }));
      if (claim === undefined) continue;
      const { volumeName } = claim.spec;
      views.set(name, { claim, volume: volumeName ? volumes.get(volumeName) : undefined });
    }
    return views;
  }

  function podsOf(migration: Migration, vmi: Stored<VirtualMachineInstance> | undefined) {
    const { uid, namespace } = migration.metadata;
    const record = recordOf({ migration });
    const podOf = (name: string | undefined) => (name ? pods.get(keyOf({ namespace, name })) : undefined);
    const sourcePod = podOf(record.sourcePod ?? (vmi && currentLauncherName(vmi)));
    const targetPod = podOf(record.targetPod ?? (vmi && targetPodName(vmi, uid)));
    return { sourcePod, targetPod: targetPod?.metadata.labels?.[MIGRATION_UID_LABEL] === uid ? targetPod : undefined };
  }

  function activeBeside(migration: Migration, node: string | undefined): MigrationWorld['active'] {
    const beside = (key: string) =>
      migrations.byIndex(ACTIVE_BY_NODE, key).filter(({ metadata }) => metadata.uid !== migration.metadata.uid).length;
    return { inCluster: beside(ACTIVE), fromNode: node === undefined ? 0 : beside(nodeKey(node)) };
  }

  const nodeAnswers = (name: string | undefined) => name !== undefined && answers(nodes.get(name));

  return async (key, options) => {
    const migration = migrations.get(key);
    if (migration === undefined) return undefined;
    const { namespace, uid } = migration.metadata;
    const instanceKey = instanceKeyOf(migration);
    // Nothing but its place among its like, and a last word of the agent, is of interest any more.
    const isOver = isFinished(migration);
    const vmi = isOver ? vmis.get(instanceKey) : await instanceOf(migration, options);
    const { sourcePod, targetPod } = podsOf(migration, vmi);
    const record = recordOf({ migration });
    const claimOf = (name: string | undefined) => (name ? claims.get(keyOf({ namespace, name })) : undefined);
    const sourceState =
      record.sourcePersistentStatePVCName ??
      (sourcePod === undefined || hasBegun({ migration }) ? undefined : stateClaimIn(sourcePod));
    const sourceNode = record.sourceNode ?? sourcePod?.spec.nodeName;
    return {
      migration,
      vmi,
      vm: vms.get(instanceKey),
      sourcePod,
      targetPod,
      claims: vmi === undefined || isOver ? new Map() : claimsOf(vmi),
      sourceClaim: claimOf(sourceState),
      targetClaim: claimOf(record.targetPersistentStatePVCName),
      isTaken: (name) => {
        const claim = claimOf(name);
        return claim !== undefined && !isTargetClaimOf(claim, migration);
      },
      otherUserOf: (name) =>
        vmis
          .byIndex(INSTANCES_BY_CLAIM, keyOf({ namespace, name }))
          .find((other) => objectKey(other) !== instanceKey && !isFinal(other.status?.phase))?.metadata.name,
      incoming: volumes.byIndex(INCOMING_BY_MIGRATION, uid),
      others: migrations.byIndex(UNFINISHED_BY_INSTANCE, instanceKey).filter(({ metadata }) => metadata.uid !== uid),
      finished: isOver ? migrations.byIndex(FINISHED_BY_INSTANCE, instanceKey) : [],
      active: activeBeside(migration, sourceNode),
      settings: configurationOf(kubevirts.get(CONFIGURATION_KEY)).migrations,
      sourceAnswers: nodeAnswers(sourceNode),
      targetAnswers: nodeAnswers(record.targetNode),
      now: clock.now(),
    };
  };
}

export function instanceKeyOf({ metadata: { namespace }, spec }: Migration): string {
  return keyOf({ namespace, name: spec.vmiName ?? '' });
}

function stateClaimKeysOf(migration: Migration): string[] {
  const { sourcePersistentStatePVCName: from, targetPersistentStatePVCName: to } = recordOf({ migration });
  const { namespace } = migration.metadata;
  return [from, to].flatMap((name) => (name ? [keyOf({ namespace, name })] : []));
}

function stateKeyOfInstance({ metadata: { namespace }, spec }: Migration): string {
  return stateIndexKey({ namespace, name: spec.vmiName ?? '' });
}

function isFit(vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  const { phase, conditions } = vmi?.status ?? {};
  return vmi !== undefined && !isDeleting(vmi) && phase === 'Running' && isTrue(conditions, 'LiveMigratable');
}

/** Nodes may have any name. */
function nodeKey(node: string): string {
  return `node/${node}`;
}

function activeKeysOf(migration: Migration): string[] {
  if (!isActive(migration)) return [];
  const node = migration.status?.migrationState?.sourceNode;
  return node === undefined ? [ACTIVE] : [ACTIVE, nodeKey(node)];
}

function nodesOf(migration: Migration): string[] {
  const { sourceNode, targetNode } = migration.status?.migrationState ?? {};
  return isActive(migration) ? [sourceNode, targetNode].filter((node) => node !== undefined) : [];
}

/** Unknown is what the cluster says of nodes that it has not heard of for some time. */
function answers(node: Node | undefined): boolean {
  const ready = findCondition(node?.status?.conditions, 'Ready');
  return ready !== undefined && ready.status !== 'Unknown';
}
