/**
 * The guest is at the target: so is the state of the VM from now on, and the data of its disks. Each step is decided
 * from what is there, in this order, so that whoever goes on after a crash does the rest of it:
 *
 *   target claim marked ─► source claim unmarked ─► volumes ─► instance ─► source pod gone ─► source claim gone ─► done
 *
 * Between the first two the newer claim says which one it takes the place of. Pure.
 */
import type { MigrationState } from '#api/migration-state.ts';
import { MIGRATION_NAME_LABEL, MIGRATION_POD_FINALIZER } from '#api/names.ts';
import {
  STATE_LABEL,
  stateAnnotationOf,
  stateKeyOf,
  stateKeysOfClaim,
  SUPERSEDES_ANNOTATION,
} from '#api/persistent-state.ts';
import { dropFinalizer } from '#controllers/finalizers.ts';
import { ends } from '#controllers/migration/ending.ts';
import { statusOf } from '#controllers/migration/migration-status.ts';
import { isToldTo, recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { moveVolumes, VOLUMES_AT_A_TIME } from '#controllers/migration/moving-volumes.ts';
import { isTargetClaimOf } from '#controllers/migration/target-claim.ts';
import { tellInstance } from '#controllers/migration/tell.ts';
import { findCondition } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerOf, isDeleting, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, Plan } from '#runtime/plan.ts';

type Claim = Stored<PersistentVolumeClaim>;

export function handOver(world: MigrationWorld): Plan {
  const state = succeeded(world);
  const fault = claimFault(world);
  if (fault !== undefined) return { changes: [], status: statusOf(world, { phase: 'Running', message: fault }) };
  const volumes = moveVolumes(world);
  const isTold = isToldTo(world.vmi, world.migration.metadata.uid);
  const afterVolumes = [
    ...(isTold ? tellInstance(world, state, 'its guest has gone to another node') : []),
    ...releasePods(world),
    ...removeSource(world),
  ];
  const changes = [
    ...handOverState(world),
    ...volumes.slice(0, VOLUMES_AT_A_TIME),
    ...(volumes.length > VOLUMES_AT_A_TIME ? [] : afterVolumes),
  ];
  if (changes.length > 0) return { status: statusOf(world, { state, phase: 'Running' }), changes };
  const { sourceNode = '', targetNode = '' } = state;
  const message = `The guest has gone from node ${sourceNode} to node ${targetNode}`;
  return ends(world, { phase: 'Succeeded', state, note: { type: 'Normal', reason: 'SuccessfulMigration', message } });
}

function succeeded(world: MigrationWorld): MigrationState {
  const record = recordOf(world);
  if (record.completed === true) return record;
  const now = timestamp(world.now);
  const ready = findCondition(world.targetPod?.status?.conditions, 'Ready');
  return {
    ...record,
    completed: true,
    endTimestamp: now,
    targetNodeDomainReadyTimestamp: (ready?.status === 'True' ? ready.lastTransitionTime : undefined) ?? now,
    ...(record.abortRequested === true ? { abortStatus: 'Failed' as const } : {}),
  };
}

/** Where nothing must be marked and nothing deleted before somebody has looked at it. */
function claimFault(world: MigrationWorld): string | undefined {
  const { sourcePersistentStatePVCName: source, targetPersistentStatePVCName: target } = recordOf(world);
  if (source === undefined && target === undefined) return undefined;
  if (source === undefined || target === undefined) return 'missing source and/or target PVC name(s)';
  const { targetClaim } = world;
  if (targetClaim === undefined) {
    return world.sourceClaim === undefined ? undefined : `the claim ${target} that holds the state of the VM is gone`;
  }
  const key = stateKeyOf(vmNameOf(targetClaim));
  const { annotations = {}, labels = {} } = targetClaim.metadata;
  const marks = stateKeysOfClaim({ ...targetClaim, metadata: { annotations, labels } });
  const other = marks.find((mark) => mark !== key);
  return other === undefined ? undefined : `the claim ${target} already holds the state of the VM ${other}`;
}

/** Its owner is the VM, or the instance of the same name. */
function vmNameOf(claim: Claim): string {
  return controllerOf(claim)?.name ?? '';
}

function handOverState({ migration, sourceClaim, targetClaim }: MigrationWorld): Change[] {
  if (targetClaim === undefined) return [];
  const vmName = vmNameOf(targetClaim);
  const [annotation, key] = [stateAnnotationOf(vmName), stateKeyOf(vmName)];
  const supersedes: Marks = sourceClaim === undefined ? {} : { [SUPERSEDES_ANNOTATION]: sourceClaim.metadata.uid };
  const changes = marking(
    targetClaim,
    { [annotation]: 'true', ...supersedes },
    { [STATE_LABEL]: key, ...(isTargetClaimOf(targetClaim, migration) ? { [MIGRATION_NAME_LABEL]: null } : {}) },
    'it holds the state of the VM from now on',
  );
  if (sourceClaim === undefined) return changes;
  const why = 'its state has gone to another claim';
  return [...changes, ...marking(sourceClaim, { [annotation]: null }, { [STATE_LABEL]: null }, why)];
}

type Marks = Readonly<Record<string, string | null>>;

function marking({ metadata }: Claim, annotations: Marks, labels: Marks, why: string): Change[] {
  const isSo = (wanted: Marks, there: Readonly<Record<string, string>> = {}) =>
    Object.entries(wanted).every(([key, value]) => (there[key] ?? null) === value);
  if (isSo(annotations, metadata.annotations) && isSo(labels, metadata.labels)) return [];
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations, labels } } };
  return [{ do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, patch, why }];
}

function releasePods({ sourcePod, targetPod }: MigrationWorld): Change[] {
  const why = 'it is decided where the guest is';
  return [
    ...deletion(PODS, sourcePod, 'Deleted virtual machine pod that the guest has left'),
    ...dropFinalizer(MIGRATION_POD_FINALIZER, PODS, sourcePod, why),
    ...dropFinalizer(MIGRATION_POD_FINALIZER, PODS, targetPod, why),
  ];
}

function removeSource({ sourceClaim }: MigrationWorld): Change[] {
  return deletion(PERSISTENT_VOLUME_CLAIMS, sourceClaim, 'Deleted PersistentVolumeClaim of state that has moved');
}

function deletion(
  type: typeof PODS | typeof PERSISTENT_VOLUME_CLAIMS,
  object: Stored | undefined,
  what: string,
): Change[] {
  if (object === undefined || isDeleting(object)) return [];
  const { namespace, name, uid } = object.metadata;
  return [{ do: 'delete', type, name: { namespace, name }, uid, why: `${what}: ${name}` }];
}
