/**
 * The whole status of an instance: what this controller says, and what the node agent and controllers/migration said,
 * unchanged. When a migration has succeeded, all that follows from the pod changes at once. Pure.
 */
import { AGENT_FIELDS, type VmiPhase, type VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER } from '#api/names.ts';
import { conditionsOf } from '#controllers/vmi/conditions.ts';
import { isFinal, type PhaseView } from '#controllers/vmi/phase.ts';
import { volumeStatusOf } from '#controllers/vmi/volume-status.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';

export function vmiStatusOf(world: VmiWorld, { phase, reason, message: told }: PhaseView): VmiStatus {
  const old = world.vmi.status ?? {};
  const message = told ?? old.message;
  const { pod } = world;
  const nodeName = pod?.spec.nodeName || old.nodeName;
  // Claims are mostly bound on the way to a node: told once that is over, it is told once.
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
    conditions: conditionsOf(world, phase),
    ...activePods(world),
    ...(qosClass === undefined ? {} : { qosClass }),
    ...(launcherContainerImageVersion === undefined ? {} : { launcherContainerImageVersion }),
    ...(volumeStatus.length === 0 ? {} : { volumeStatus }),
    ...(old.migrationState === undefined ? {} : { migrationState: old.migrationState }),
    ...evacuation(old, phase, nodeName),
  };
}

/** It is to leave a node: that is done when it has, or there is nothing left to move. */
function evacuation(old: VmiStatus, phase: VmiPhase, nodeName: string | undefined): VmiStatus {
  const { evacuationNodeName } = old;
  return !evacuationNodeName || evacuationNodeName !== nodeName || isFinal(phase) ? {} : { evacuationNodeName };
}

function agentFields(old: VmiStatus): VmiStatus {
  return Object.fromEntries(AGENT_FIELDS.filter((field) => field in old).map((field) => [field, old[field]]));
}

/** Each phase once: it only goes forward. */
function transitions(old: VmiStatus, phase: VmiPhase, now: string): VmiStatus['phaseTransitionTimestamps'] {
  const list = old.phaseTransitionTimestamps ?? [];
  if (list.some((one) => one.phase === phase)) return list;
  return [...list, { phase, phaseTransitionTimestamp: now }];
}

/** Agents act for these only. */
function activePods({ pod, targetPod }: VmiWorld): Pick<VmiStatus, 'activePods'> {
  const active = [pod, targetPod].filter((one) => one !== undefined && !hasEnded(one));
  if (active.length === 0) return {};
  return { activePods: Object.fromEntries(active.map((one) => [one?.metadata.uid, one?.spec.nodeName ?? ''])) };
}
