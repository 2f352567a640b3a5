/**
 * The conditions of an instance that this controller states, in KubeVirt's words. Those of the node agent, and of
 * whoever else, keep their place and content.
 */
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER } from '#api/names.ts';
import { FAILED_STATE_CREATE, startObstacle } from '#controllers/vmi/start-obstacle.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { findCondition, isTrue, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';

const OWN = ['Ready', 'PodScheduled', 'Synchronized', 'LiveMigratable'] as const;
type OwnType = (typeof OWN)[number];

export const FAILED_CREATE = 'FailedCreate';
/** What a container waits for as a matter of course. */
const USUAL_WAITS: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

export function conditionsOf(world: VmiWorld, phase: VmiPhase): VmiStatus['conditions'] {
  const old = (world.vmi.status?.conditions ?? []) as Condition[];
  const wanted: Readonly<Record<OwnType, NextCondition | undefined>> = {
    Ready: readiness(world, phase),
    PodScheduled: scheduling(world),
    Synchronized: fault(world, phase),
    LiveMigratable: migratability(phase),
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

function readiness({ pod, vmi }: VmiWorld, phase: VmiPhase): NextCondition {
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

function migratability(phase: VmiPhase): NextCondition | undefined {
  if (phase === 'Pending' || phase === 'Scheduling') return undefined;
  const message = 'Live migration is not supported yet';
  return { type: 'LiveMigratable', status: 'False', reason: 'MigrationNotSupported', message };
}
