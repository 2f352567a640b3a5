/** Decides the next step for one instance. Pure. */
import { NODE_NAME_LABEL, VMI_FINALIZER } from '#api/names.ts';
import { stateSuffixOf } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { buildStateClaim } from '#controllers/shared/persistent-state/build-state-claim.ts';
import { FAILED_POD_CREATE, notSynchronized } from '#controllers/vmi/conditions.ts';
import { buildLauncherPod } from '#controllers/shared/launcher/launcher-pod.ts';
import { awaitsVolumes } from '#controllers/vmi/missing-claims.ts';
import { vmiPhaseOf, type PhaseView } from '#controllers/vmi/phase.ts';
import { disruptionReason, hasEnded } from '#kube/pod-phase.ts';
import { isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { FAILED_STATE_CREATE, findLastingRefusal, findLaunchRefusal } from '#controllers/vmi/launch-refusal.ts';
import { vmiStatusOf } from '#controllers/vmi/vmi-status.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { findCondition, setCondition, type Condition } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, type Pod } from '#kube/core-kinds.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, FailedChange, Plan } from '#runtime/plan.ts';
import { removeFinalizer } from '#controllers/shared/finalizers.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

/** The interval of checks whether the node of an evicted pod is still reachable. */
const NODE_RECHECK_MS = 30_000;

export function decideVmi(world: VmiWorld): Plan {
  const { vmi } = world;
  const phaseView = vmiPhaseOf(world);
  const events = eventsOf(world, phaseView);
  if (vmi.metadata.deletionTimestamp !== undefined) {
    const changes = removeVmi(world);
    // Without pods this write removes the instance, so its status is not written.
    return podsOf(world).length === 0 ? { changes } : { changes, status: vmiStatusOf(world, phaseView), events };
  }
  const creation = phaseView.phase === 'Pending' ? planLaunch(world) : [];
  return {
    status: vmiStatusOf(world, phaseView),
    changes: [...creation, ...labelWithNode(world, phaseView)],
    continueOnError: creation.length > 0,
    events,
    requeueAfterMs: awaitsNode(world) ? NODE_RECHECK_MS : undefined,
  };
}

function planLaunch(world: VmiWorld): Change[] {
  const { vmi, claims, state, policy, addresses } = world;
  if (findLaunchRefusal(world) !== undefined) return [];
  if (state?.kind === 'wanted') {
    const object = buildStateClaim(vmi, state.storage, stateSuffixOf(vmi.metadata.uid));
    const why = `Created PersistentVolumeClaim ${object.metadata.name} for the persistent state of the VM`;
    return [{ do: 'create', type: PERSISTENT_VOLUME_CLAIMS, object, why }];
  }
  if (awaitsVolumes(world) || awaitsAddresses(world)) return [];
  const object = buildLauncherPod(vmi, claims, {
    state: state?.kind === 'exists' ? state : undefined,
    policy,
    addresses: addresses?.addresses,
  });
  const why = `Created virtual machine pod ${object.metadata.name}`;
  return [{ do: 'create', type: PODS, object, why }];
}

/** Reports whether addresses that the pod names do not exist yet; controllers/network-address is about to create them. */
function awaitsAddresses({ addresses }: VmiWorld): boolean {
  return addresses !== undefined && addresses.addresses === undefined;
}

/** Returns the status that reports a pod or state claim that could not be created, or undefined if none failed. */
export function concludeVmi({ vmi, now }: VmiWorld, failures: readonly FailedChange[]): Plan['status'] {
  const failure = failures.find(({ change }) => change.do === 'create');
  if (failure === undefined) return undefined;
  const [reason, what] =
    failure.change.type === PODS
      ? [FAILED_POD_CREATE, 'virtual machine pod']
      : [FAILED_STATE_CREATE, 'backend storage'];
  const message = `failed to create ${what}: ${errorMessage(failure.error)}`;
  const conditions = (vmi.status?.conditions ?? []) as Condition[];
  return { ...vmi.status, conditions: setCondition(conditions, notSynchronized(reason, message), now) };
}

function labelWithNode({ vmi, pod }: VmiWorld, { phase }: PhaseView): Change[] {
  const node = pod?.spec.nodeName;
  const { namespace, name, uid, labels } = vmi.metadata;
  if (!node || isFinalVmiPhase(phase) || labels?.[NODE_NAME_LABEL] === node) return [];
  const patch = { type: 'merge' as const, body: { metadata: { labels: { [NODE_NAME_LABEL]: node } } } };
  const why = `the pod of the instance is on ${node}`;
  return [{ do: 'patch', type: VIRTUAL_MACHINE_INSTANCES, name: { namespace, name }, uid, patch, why }];
}

function awaitsNode({ pod, isNodeReachable }: VmiWorld): boolean {
  return pod !== undefined && !hasEnded(pod) && isNodeReachable && disruptionReason(pod) !== undefined;
}

/** Returns Events for what the previous status does not show yet. */
function eventsOf(world: VmiWorld, { phase, reason, message }: PhaseView): EventNote[] {
  const { status } = world.vmi;
  const events: EventNote[] = [];
  if (phase === 'Failed' && status?.phase !== 'Failed') {
    const what = message ?? 'The guest has failed.';
    events.push({ type: 'Warning', reason: reason || 'Failed', message: what });
  }
  const isRefused = phase === 'Pending' && world.pod === undefined;
  const refusal = isRefused ? findLastingRefusal(world) : undefined;
  const reported = findCondition(status?.conditions, 'Synchronized');
  if (refusal !== undefined && reported?.message !== refusal.message) events.push({ type: 'Warning', ...refusal });
  return events;
}

/**
 * Returns the next changes for an instance under deletion: all its launcher pods are deleted, the node agents shut down the
 * guest and remove the pods, and then the finalizer of the instance is removed.
 */
function removeVmi(world: VmiWorld): Change[] {
  const pods = podsOf(world);
  if (pods.length === 0) {
    return removeFinalizer(VMI_FINALIZER, VIRTUAL_MACHINE_INSTANCES, world.vmi, 'the guest and its pods are gone');
  }
  return pods.filter((pod) => !isDeleting(pod)).map(deletePod);
}

/** Returns all launcher pods of the instance. */
function podsOf({ pod, targetPod, otherPods }: VmiWorld): Stored<Pod>[] {
  return [pod, targetPod, ...otherPods].filter((one) => one !== undefined);
}

function deletePod({ metadata: { namespace, name, uid } }: Stored<Pod>): Change {
  const why = `Deleted virtual machine pod ${name}`;
  return { do: 'delete', type: PODS, name: { namespace, name }, uid, why };
}
