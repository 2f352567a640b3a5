/**
 * The first step of a migration: it is written down where from and where to, then the claim and the pod of the target
 * are made. Both have names that are decided before, so that making them twice makes one. Pure.
 */
import type { MigrationState } from '#api/migration-state.ts';
import { needsState } from '#api/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { lateness } from '#controllers/migration/lateness.ts';
import { statusOf } from '#controllers/migration/migration-status.ts';
import { recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { buildTargetClaim, targetClaimName } from '#controllers/migration/target-claim.ts';
import { buildTargetPod } from '#controllers/migration/target-pod.ts';
import { targetPodName } from '#controllers/vmi/launcher-pod.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { isStale, textOf } from '#runtime/apply.ts';
import type { Change, Failure, Plan } from '#runtime/plan.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** Nothing is in its way. */
export function begin(world: MigrationWorld, vmi: Vmi): Plan {
  const state = firstState(world, vmi);
  return { ...makeTarget(world, vmi, state), status: statusOf(world, { state, phase: 'Scheduling' }) };
}

/** It has begun, and the target pod has no node yet. */
export function prepare(world: MigrationWorld, vmi: Vmi): Plan {
  const late = lateness(world);
  const made = makeTarget(world, vmi, recordOf(world));
  // What could not be made is told until it is there.
  const message = made.changes.length > 0 ? world.migration.status?.message : late?.waits;
  return { ...made, status: statusOf(world, { message }), requeueAfterMs: late?.leftMs };
}

function firstState(world: MigrationWorld, vmi: Vmi): MigrationState {
  const { migration, sourcePod, sourceClaim, settings } = world;
  const { bandwidthPerMigration, completionTimeoutPerGiB, progressTimeout, allowAutoConverge } = settings;
  const names =
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
    ...names,
    migrationConfiguration: { bandwidthPerMigration, completionTimeoutPerGiB, progressTimeout, allowAutoConverge },
  };
}

function makeTarget(world: MigrationWorld, vmi: Vmi, state: MigrationState): Pick<Plan, 'changes' | 'goOn'> {
  const { migration, sourceClaim, targetClaim, targetPod, sourcePod } = world;
  const changes: Change[] = [];
  const name = state.targetPersistentStatePVCName;
  const claim =
    targetClaim ?? (name && sourceClaim ? buildTargetClaim(vmi, sourceClaim, { migration, name }) : undefined);
  if (claim !== undefined && targetClaim === undefined) {
    const why = `Created PersistentVolumeClaim ${name ?? ''} for the persistent state of the VM at the target`;
    changes.push({ do: 'create', type: PERSISTENT_VOLUME_CLAIMS, object: claim, why });
  }
  if (targetPod === undefined && sourcePod !== undefined) {
    const object = buildTargetPod(world, { vmi, sourcePod, state, claim });
    changes.push({ do: 'create', type: PODS, object, why: `Created migration target pod ${state.targetPod ?? ''}` });
  }
  return { changes, goOn: changes.length > 0 };
}

/** What could not be made is told, and tried again. */
export function concludeMigration(world: MigrationWorld, failures: readonly Failure[]): Plan['status'] {
  const failure = failures.find(({ change, error }) => change.do === 'create' && !isStale(error));
  if (failure === undefined) return undefined;
  const what = failure.change.type === PODS ? 'the target pod' : 'the claim for the persistent state';
  return { ...world.migration.status, message: `failed to create ${what}: ${textOf(failure.error)}` };
}
