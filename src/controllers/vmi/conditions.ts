/**
 * Computes the conditions of an instance that this controller owns; wording follows KubeVirt. Conditions of the node
 * agent and of other components keep their place and content.
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import { type VmiPhase, type VmiStatus, isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER } from '#api/names.ts';
import { hasLeft } from '#controllers/shared/launcher/migration-commit.ts';
import { DISKS_NOT_MIGRATABLE, describeImmovableVolume } from '#controllers/vmi/migratable.ts';
import { awaitsVolumes } from '#controllers/vmi/missing-claims.ts';
import { FAILED_STATE_CREATE, findLaunchRefusal } from '#controllers/vmi/launch-refusal.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { findCondition, isTrue, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';

const OWN_TYPES = ['Ready', 'PodScheduled', 'Synchronized', 'LiveMigratable'] as const;
type OwnType = (typeof OWN_TYPES)[number];

export const FAILED_POD_CREATE = 'FailedCreate';
/** The reason of the condition Ready of a pod that waits for a migrating guest. */
const AWAITS_GUEST_REASON = 'MigrationTarget';
/** Reasons for which every container waits during a normal start. */
const NORMAL_WAITS: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

export function vmiConditions(world: VmiWorld, phase: VmiPhase): VmiStatus['conditions'] {
  const old = (world.vmi.status?.conditions ?? []) as Condition[];
  const wanted: Readonly<Record<OwnType, NextCondition | undefined>> = {
    Ready: readyCondition(world, phase),
    PodScheduled: podScheduledCondition(world),
    Synchronized: synchronizedCondition(world, phase),
    LiveMigratable: liveMigratableCondition(world, phase),
  };
  let next: readonly Condition[] = old.filter(({ type }) => !isOwn(type) || wanted[type] !== undefined);
  for (const type of OWN_TYPES) {
    const condition = wanted[type];
    if (condition !== undefined) next = setCondition(next, condition, world.now);
  }
  return next as VmiStatus['conditions'];
}

function isOwn(type: string): type is OwnType {
  return (OWN_TYPES as readonly string[]).includes(type);
}

function readyCondition(world: VmiWorld, phase: VmiPhase): NextCondition {
  const { pod, vmi } = world;
  const reported = findCondition((vmi.status?.conditions ?? []) as Condition[], 'Ready');
  if (phase === 'Running' && reported !== undefined && isBetweenPods(world)) return copyCondition('Ready', reported);
  const notReady = (reason: string, message: string): NextCondition => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  if (pod === undefined) return notReady('PodNotExists', 'virt-launcher pod has not yet been scheduled');
  if (hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) {
    return notReady('PodTerminating', 'virt-launcher pod is terminating');
  }
  if (phase !== 'Running') return notReady('GuestNotRunning', 'Guest VM is not reported as running');
  // A paused guest is not ready, as with KubeVirt's readiness gate.
  if (isTrue(vmi.status?.conditions, 'Paused')) return notReady('GuestNotRunning', 'Guest VM is paused');
  const ready = findCondition(pod.status?.conditions, 'Ready');
  if (ready === undefined) return notReady('PodConditionMissing', 'virt-launcher pod is missing the Ready condition');
  return copyCondition('Ready', ready);
}

/** Reports whether the guest is between two pods and cannot be probed: its readiness then stays as it was. */
function isBetweenPods({ vmi, pod, lastPod }: VmiWorld): boolean {
  const state = vmi.status?.migrationState;
  if (isMigrating(state)) return hasLeft(pod ?? lastPod, state?.migrationUid);
  if (state?.failed === true || pod === undefined || pod.metadata.name !== state?.targetPod) return false;
  const isAlive = !hasEnded(pod) && pod.metadata.deletionTimestamp === undefined;
  return isAlive && findCondition(pod.status?.conditions, 'Ready')?.reason === AWAITS_GUEST_REASON;
}

/** Returns the condition only while the pod cannot be scheduled. */
function podScheduledCondition({ pod, machineProblem }: VmiWorld): NextCondition | undefined {
  const scheduled = findCondition(pod?.status?.conditions, 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  if (machineProblem === undefined) return copyCondition('PodScheduled', scheduled);
  // The scheduler reports only that no node has a label.
  const message = `Cannot schedule the VM: ${machineProblem}; ${scheduled.message ?? ''}`;
  return copyCondition('PodScheduled', { ...scheduled, message });
}

function copyCondition(type: string, { status, reason, message }: Condition): NextCondition {
  return { type, status, ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}

/** Returns Synchronized=False with the reason that prevents a start; undefined if nothing does. */
function synchronizedCondition(world: VmiWorld, phase: VmiPhase): NextCondition | undefined {
  if (phase === 'Succeeded' || phase === 'Failed') return undefined;
  if (world.pod === undefined) {
    if (phase !== 'Pending') return undefined;
    const refusal = findLaunchRefusal(world);
    if (refusal !== undefined) return notSynchronized(refusal.reason, refusal.message);
    // concludeVmi wrote this when the pod or the state claim could not be created; it stays until that exists.
    const failed = world.state?.kind === 'wanted' ? FAILED_STATE_CREATE : FAILED_POD_CREATE;
    const old = findCondition(world.vmi.status?.conditions, 'Synchronized');
    return old?.reason === failed ? notSynchronized(failed, old.message ?? '') : undefined;
  }
  const compute = world.pod.status?.containerStatuses?.find(({ name }) => name === COMPUTE_CONTAINER);
  const { reason = '', message = '' } = compute?.state?.waiting ?? {};
  return reason === '' || NORMAL_WAITS.has(reason) ? undefined : notSynchronized(reason, message);
}

export function notSynchronized(reason: string, message: string): NextCondition {
  return { type: 'Synchronized', status: 'False', reason, ...(message === '' ? {} : { message }) };
}

function liveMigratableCondition(world: VmiWorld, phase: VmiPhase): NextCondition | undefined {
  if (phase === 'Pending' || phase === 'Scheduling') return undefined;
  const reported = findCondition((world.vmi.status?.conditions ?? []) as Condition[], 'LiveMigratable');
  // The condition stays as it was after the end of the guest, and while the cache does not show all volumes.
  if (isFinalVmiPhase(phase) || awaitsVolumes(world))
    return reported === undefined ? undefined : copyCondition('LiveMigratable', reported);
  const message = describeImmovableVolume(world);
  if (message === undefined) return { type: 'LiveMigratable', status: 'True' };
  return { type: 'LiveMigratable', status: 'False', reason: DISKS_NOT_MIGRATABLE, message };
}
