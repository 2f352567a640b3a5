/**
 * The conditions of an instance that this controller states, in KubeVirt's words. Those of the node agent, and of
 * whoever else, keep their place and content.
 */
import { isMigrating } from '#api/migration-state.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER } from '#api/names.ts';
import { hasLeft } from '#controllers/vmi/committed.ts';
import { DISKS_NOT_MIGRATABLE, migrationObstacle } from '#controllers/vmi/migratable.ts';
import { waitsForVolumes } from '#controllers/vmi/missing-claims.ts';
import { isFinal } from '#controllers/vmi/phase.ts';
import { FAILED_STATE_CREATE, startObstacle } from '#controllers/vmi/start-obstacle.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { findCondition, isTrue, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';

const OWN = ['Ready', 'PodScheduled', 'Synchronized', 'LiveMigratable'] as const;
type OwnType = (typeof OWN)[number];

export const FAILED_CREATE = 'FailedCreate';
/** Of the condition Ready of a pod that a guest is to come to. */
const AWAITS_GUEST = 'MigrationTarget';
/** What a container waits for as a matter of course. */
const USUAL_WAITS: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

export function conditionsOf(world: VmiWorld, phase: VmiPhase): VmiStatus['conditions'] {
  const old = (world.vmi.status?.conditions ?? []) as Condition[];
  const wanted: Readonly<Record<OwnType, NextCondition | undefined>> = {
    Ready: readiness(world, phase),
    PodScheduled: scheduling(world),
    Synchronized: fault(world, phase),
    LiveMigratable: migratability(world, phase),
  };
  let next: readonly Condition[] = old.filter(({ type }) => !isOwn(type) || wanted[type] !== undefined);
  for (const type of OWN) {
    const condition = wanted[type];
    if (condition !== undefined) next = setCondition(next, condition, world.now);
  }
  return next as VmiStatus['conditions'];
}

function isOwn(type: string): type is OwnType {
  return (OWN as readonly string[]).includes(type);
}

function readiness(world: VmiWorld, phase: VmiPhase): NextCondition {
  const { pod, vmi } = world;
  const told = findCondition((vmi.status?.conditions ?? []) as Condition[], 'Ready');
  if (phase === 'Running' && told !== undefined && isHandedOver(world)) return said('Ready', told);
  const not = (reason: string, message: string): NextCondition => ({ type: 'Ready', status: 'False', reason, message });
  if (pod === undefined) return not('PodNotExists', 'virt-launcher pod has not yet been scheduled');
  if (hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined) {
    return not('PodTerminating', 'virt-launcher pod is terminating');
  }
  if (phase !== 'Running') return not('GuestNotRunning', 'Guest VM is not reported as running');
  // As KubeVirt's readiness gate does: a guest that stands still serves nobody.
  if (isTrue(vmi.status?.conditions, 'Paused')) return not('GuestNotRunning', 'Guest VM is paused');
  const ready = findCondition(pod.status?.conditions, 'Ready');
  if (ready === undefined) return not('PodConditionMissing', 'virt-launcher pod is missing the Ready condition');
  return said('Ready', ready);
}

/** In the moment between two pods nobody asks the guest: it is as it was. */
function isHandedOver({ vmi, pod, lastPod }: VmiWorld): boolean {
  const state = vmi.status?.migrationState;
  if (isMigrating(state)) return hasLeft(pod ?? lastPod, state?.migrationUid);
  if (state?.failed === true || pod === undefined || pod.metadata.name !== state?.targetPod) return false;
  const isThere = !hasEnded(pod) && pod.metadata.deletionTimestamp === undefined;
  return isThere && findCondition(pod.status?.conditions, 'Ready')?.reason === AWAITS_GUEST;
}

/** Only while no node takes it: that is what people look for. */
function scheduling({ pod }: VmiWorld): NextCondition | undefined {
  const scheduled = findCondition(pod?.status?.conditions, 'PodScheduled');
  return scheduled?.status === 'False' ? said('PodScheduled', scheduled) : undefined;
}

function said(type: string, { status, reason, message }: Condition): NextCondition {
  return { type, status, ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}

/** Synchronized=False says what keeps the guest from starting; there is none while all goes well. */
function fault(world: VmiWorld, phase: VmiPhase): NextCondition | undefined {
  if (phase === 'Succeeded' || phase === 'Failed') return undefined;
  if (world.pod === undefined) {
    if (phase !== 'Pending') return undefined;
    const obstacle = startObstacle(world);
    if (obstacle !== undefined) return notSynchronized(obstacle.reason, obstacle.message);
    // Written when the pod, or the claim for its state, could not be made; it stands until that is there.
    const failed = world.state?.is === 'wanted' ? FAILED_STATE_CREATE : FAILED_CREATE;
    const old = findCondition(world.vmi.status?.conditions, 'Synchronized');
    return old?.reason === failed ? notSynchronized(failed, old.message ?? '') : undefined;
  }
  const compute = world.pod.status?.containerStatuses?.find(({ name }) => name === COMPUTE_CONTAINER);
  const { reason = '', message = '' } = compute?.state?.waiting ?? {};
  return reason === '' || USUAL_WAITS.has(reason) ? undefined : notSynchronized(reason, message);
}

export function notSynchronized(reason: string, message: string): NextCondition {
  return { type: 'Synchronized', status: 'False', reason, ...(message === '' ? {} : { message }) };
}

function migratability(world: VmiWorld, phase: VmiPhase): NextCondition | undefined {
  if (phase === 'Pending' || phase === 'Scheduling') return undefined;
  const told = findCondition((world.vmi.status?.conditions ?? []) as Condition[], 'LiveMigratable');
  // What has ended moves no more, and of what no watch has shown yet nothing is said.
  if (isFinal(phase) || waitsForVolumes(world)) return told === undefined ? undefined : said('LiveMigratable', told);
  const message = migrationObstacle(world);
  if (message === undefined) return { type: 'LiveMigratable', status: 'True' };
  return { type: 'LiveMigratable', status: 'False', reason: DISKS_NOT_MIGRATABLE, message };
}
