/**
 * The first step of a migration: records source and target in the status, then creates the claim and the pod of the
 * target. Their names are recorded first, so that a repeated attempt does not create a second pair. Pure.
 */
import type { MigrationState } from '#api/migration/migration-state.ts';
import { hasPodAddresses, podAddressesOf } from '#api/network/pod-addresses.ts';
import { needsState } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { targetDeadline } from '#controllers/migration/target-deadline.ts';
import { buildMigrationStatus } from '#controllers/migration/migration-status.ts';
import { migrationStateOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { buildTargetClaim, targetClaimName } from '#controllers/migration/target-claim.ts';
import { targetPodName, buildLauncherPod } from '#controllers/shared/launcher/launcher-pod.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, type PersistentVolumeClaim, type Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';
import { isStale } from '#runtime/apply.ts';
import type { Change, FailedChange, Plan } from '#runtime/plan.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** Begins a migration that no check holds back. */
export function beginMigration(world: MigrationWorld, vmi: Vmi): Plan {
  const state = buildFirstState(world, vmi);
  return { ...createTarget(world, vmi, state), status: buildMigrationStatus(world, { state, phase: 'Scheduling' }) };
}

/** Continues a migration that has begun and whose target pod has no node yet. */
export function prepareTarget(world: MigrationWorld, vmi: Vmi): Plan {
  const deadline = targetDeadline(world);
  const target = createTarget(world, vmi, migrationStateOf(world));
  // The message of concludeMigration stays until the missing object exists.
  const message = target.changes.length > 0 ? world.migration.status?.message : deadline?.delay;
  return { ...target, status: buildMigrationStatus(world, { message }), requeueAfterMs: deadline?.remainingMs };
}

function buildFirstState(world: MigrationWorld, vmi: Vmi): MigrationState {
  const { migration, sourcePod, sourceClaim, settings } = world;
  const { bandwidthPerMigration, completionTimeoutPerGiB, progressTimeout, allowAutoConverge } = settings;
  const claimNames =
    sourceClaim === undefined || !needsState(vmi.spec)
      ? {}
      : {
          sourcePersistentStatePVCName: sourceClaim.metadata.name,
          targetPersistentStatePVCName: targetClaimName(vmi, world),
        };
  return {
    migrationUid: migration.metadata.uid,
    mode: 'PreCopy',
    sourceNode: sourcePod?.spec.nodeName,
    sourcePod: sourcePod?.metadata.name,
    targetPod: targetPodName(vmi, migration.metadata.uid),
    ...claimNames,
    migrationConfiguration: { bandwidthPerMigration, completionTimeoutPerGiB, progressTimeout, allowAutoConverge },
  };
}

function createTarget(world: MigrationWorld, vmi: Vmi, state: MigrationState): Plan {
  const { migration, sourceClaim, targetClaim, targetPod, sourcePod } = world;
  const changes: Change[] = [];
  const name = state.targetPersistentStatePVCName;
  const claim =
    targetClaim ?? (name && sourceClaim ? buildTargetClaim(vmi, sourceClaim, { migration, name }) : undefined);
  if (claim !== undefined && targetClaim === undefined) {
    const why = `Created PersistentVolumeClaim ${name ?? ''} for the persistent state of the VM on the target node`;
    changes.push({ do: 'create', type: PERSISTENT_VOLUME_CLAIMS, object: claim, why });
  }
  if (targetPod === undefined && sourcePod !== undefined) {
    const object = buildTargetPod(world, { vmi, sourcePod, state, claim });
    changes.push({ do: 'create', type: PODS, object, why: `Created migration target pod ${state.targetPod ?? ''}` });
  }
  return { changes, continueOnError: changes.length > 0 };
}

/** Reports in the status which object could not be created; the controller retries. */
export function concludeMigration(world: MigrationWorld, failures: readonly FailedChange[]): Plan['status'] {
  const failure = failures.find(({ change, error }) => change.do === 'create' && !isStale(error));
  if (failure === undefined) return undefined;
  const objectText = failure.change.type === PODS ? 'the target pod' : 'the claim for the persistent state';
  return { ...world.migration.status, message: `failed to create ${objectText}: ${errorMessage(failure.error)}` };
}

interface TargetPodInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly sourcePod: Stored<Pod>;
  readonly state: MigrationState;
  /** May not exist yet: the pod only needs its name, and the claim is bound after the pod has a node. */
  readonly claim?: PersistentVolumeClaim;
}

/** Returns the target pod: like the source pod, except for its node and the claim of the persistent state. */
function buildTargetPod(
  { migration, claims, policy }: MigrationWorld,
  { vmi, sourcePod, state, claim }: TargetPodInput,
): Pod {
  const { sourceNode = '' } = state;
  const { addedNodeSelector } = migration.spec;
  const stateView = claim === undefined ? undefined : { claim: claim as Stored<PersistentVolumeClaim> };
  const target = { uid: migration.metadata.uid, sourceNode, sourcePod, addedNodeSelector };
  // The guest keeps its network: a pod without addresses has a guest whose network is inside QEMU.
  const addresses = hasPodAddresses(sourcePod) ? podAddressesOf(sourcePod) : undefined;
  return buildLauncherPod(vmi, claims, { state: stateView, target, policy, addresses });
}
