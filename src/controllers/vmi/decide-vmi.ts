/** What is done about one instance. Pure. */
import { NODE_NAME_LABEL } from '#api/names.ts';
import { stateSuffixOf } from '#api/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { buildStateClaim } from '#controllers/persistent-state/build-state-claim.ts';
import { FAILED_CREATE, notSynchronized } from '#controllers/vmi/conditions.ts';
import { podsOf, removal } from '#controllers/vmi/delete.ts';
import { buildLauncherPod } from '#controllers/vmi/launcher-pod.ts';
import { waitsForVolumes } from '#controllers/vmi/missing-claims.ts';
import { disruptionReason, isFinal, phaseOf, type PhaseView } from '#controllers/vmi/phase.ts';
import { FAILED_STATE_CREATE, startFault, startObstacle } from '#controllers/vmi/start-obstacle.ts';
import { vmiStatusOf } from '#controllers/vmi/vmi-status.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { findCondition, setCondition, type Condition } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import { textOf } from '#runtime/apply.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Failure, Plan } from '#runtime/plan.ts';

/** A pod that is to leave its node: whether the node still answers is asked again then. */
const LOOK_AGAIN_MS = 30_000;

export function decideVmi(world: VmiWorld): Plan {
  const { vmi } = world;
  const view = phaseOf(world);
  const events = eventsOf(world, view);
  if (vmi.metadata.deletionTimestamp !== undefined) {
    const changes = removal(world);
    // Without a pod the instance is gone with the next write: nobody would read its status.
    return podsOf(world).length === 0 ? { changes } : { changes, status: vmiStatusOf(world, view), events };
  }
  const creation = view.phase === 'Pending' ? launch(world) : [];
  return {
    status: vmiStatusOf(world, view),
    changes: [...creation, ...labelling(world, view)],
    goOn: creation.length > 0,
    events,
    requeueAfterMs: awaitsNode(world) ? LOOK_AGAIN_MS : undefined,
  };
}

function launch(world: VmiWorld): Change[] {
  const { vmi, claims, state } = world;
  if (startObstacle(world) !== undefined) return [];
  if (state?.is === 'wanted') {
    const object = buildStateClaim(vmi, state.storage, stateSuffixOf(vmi.metadata.uid));
    const why = `Created PersistentVolumeClaim ${object.metadata.name} for the persistent state of the VM`;
    return [{ do: 'create', type: PERSISTENT_VOLUME_CLAIMS, object, why }];
  }
  if (waitsForVolumes(world)) return [];
  const object = buildLauncherPod(vmi, claims, state?.is === 'there' ? state : undefined);
  const why = `Created virtual machine pod ${object.metadata.name}`;
  return [{ do: 'create', type: PODS, object, why }];
}

/** A pod, or a claim for its state, that could not be made is told in the status, until it is there. */
export function concludeVmi({ vmi, now }: VmiWorld, failures: readonly Failure[]): Plan['status'] {
  const failure = failures.find(({ change }) => change.do === 'create');
  if (failure === undefined) return undefined;
  const [reason, what] =
    failure.change.type === PODS ? [FAILED_CREATE, 'virtual machine pod'] : [FAILED_STATE_CREATE, 'backend storage'];
  const message = `failed to create ${what}: ${textOf(failure.error)}`;
  const conditions = (vmi.status?.conditions ?? []) as Condition[];
  return { ...vmi.status, conditions: setCondition(conditions, notSynchronized(reason, message), now) };
}

function labelling({ vmi, pod }: VmiWorld, { phase }: PhaseView): Change[] {
  const node = pod?.spec.nodeName;
  const { namespace, name, uid, labels } = vmi.metadata;
  if (!node || isFinal(phase) || labels?.[NODE_NAME_LABEL] === node) return [];
  const patch = { type: 'merge' as const, body: { metadata: { labels: { [NODE_NAME_LABEL]: node } } } };
  const why = `its pod is on ${node}`;
  return [{ do: 'patch', type: VIRTUAL_MACHINE_INSTANCES, name: { namespace, name }, uid, patch, why }];
}

function awaitsNode({ pod, nodeAnswers }: VmiWorld): boolean {
  return pod !== undefined && !hasEnded(pod) && nodeAnswers && disruptionReason(pod) !== undefined;
}

/** Each thing once, when it is new. */
function eventsOf(world: VmiWorld, { phase, reason, message }: PhaseView): EventNote[] {
  const { status } = world.vmi;
  const events: EventNote[] = [];
  if (phase === 'Failed' && status?.phase !== 'Failed') {
    const what = message ?? 'The guest has failed.';
    events.push({ type: 'Warning', reason: reason || 'Failed', message: what });
  }
  const fault = phase === 'Pending' ? startFault(world) : undefined;
  const told = findCondition(status?.conditions, 'Synchronized');
  if (fault !== undefined && told?.message !== fault.message) events.push({ type: 'Warning', ...fault });
  return events;
}
