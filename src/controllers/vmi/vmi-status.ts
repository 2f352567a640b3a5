/**
 * Computes the whole status of an instance: the fields of this controller, and those of the node agent and of
 * controllers/migration unchanged. After a successful migration all fields that depend on the pod change at once. Pure.
 */
import { AGENT_FIELDS, type VmiPhase, type VmiStatus, isFinalVmiPhase } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER } from '#api/names.ts';
import { vmiConditions } from '#controllers/vmi/conditions.ts';
import type { PhaseView } from '#controllers/vmi/phase.ts';
import { volumeStatusOf } from '#controllers/vmi/volume-status.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';

export function vmiStatusOf(world: VmiWorld, { phase, reason, message: newMessage }: PhaseView): VmiStatus {
  const old = world.vmi.status ?? {};
  const message = newMessage ?? old.message;
  const { pod } = world;
  const nodeName = pod?.spec.nodeName || old.nodeName;
  // Claims are usually bound during scheduling: reporting volumes only afterwards avoids writes.
  const volumeStatus = phase === 'Pending' || phase === 'Scheduling' ? [] : volumeStatusOf(world);
  const qosClass = pod?.status?.qosClass ?? old.qosClass;
  const image = pod?.spec.containers.find(({ name }) => name === COMPUTE_CONTAINER)?.image;
  const launcherContainerImageVersion = image ?? old.launcherContainerImageVersion;
  return {
    ...agentFields(old),
    phase,
    ...(reason ? { reason } : {}),
    ...(phase === 'Failed' && message ? { message } : {}),
    ...(nodeName ? { nodeName } : {}),
    phaseTransitionTimestamps: transitions(old, phase, world.now),
    conditions: vmiConditions(world, phase),
    ...activePods(world),
    ...(qosClass === undefined ? {} : { qosClass }),
    ...(launcherContainerImageVersion === undefined ? {} : { launcherContainerImageVersion }),
    ...(volumeStatus.length === 0 ? {} : { volumeStatus }),
    ...(old.migrationState === undefined ? {} : { migrationState: old.migrationState }),
    ...evacuation(old, phase, nodeName),
  };
}

/** Keeps the request to evacuate a node until the guest has left it or has ended. */
function evacuation(old: VmiStatus, phase: VmiPhase, nodeName: string | undefined): VmiStatus {
  const { evacuationNodeName } = old;
  return !evacuationNodeName || evacuationNodeName !== nodeName || isFinalVmiPhase(phase) ? {} : { evacuationNodeName };
}

function agentFields(old: VmiStatus): VmiStatus {
  return Object.fromEntries(AGENT_FIELDS.filter((field) => field in old).map((field) => [field, old[field]]));
}

/** Adds the phase if it is new. A phase only goes forward, so each occurs once. */
function transitions(old: VmiStatus, phase: VmiPhase, now: string): VmiStatus['phaseTransitionTimestamps'] {
  const list = old.phaseTransitionTimestamps ?? [];
  if (list.some((one) => one.phase === phase)) return list;
  return [...list, { phase, phaseTransitionTimestamp: now }];
}

/** Returns the pods that have not ended; node agents act for these only. */
function activePods({ pod, targetPod }: VmiWorld): Pick<VmiStatus, 'activePods'> {
  const active = [pod, targetPod].filter((one) => one !== undefined && !hasEnded(one));
  if (active.length === 0) return {};
  return { activePods: Object.fromEntries(active.map((one) => [one?.metadata.uid, one?.spec.nodeName ?? ''])) };
}
