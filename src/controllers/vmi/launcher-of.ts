/**
 * The launcher pods of an instance, in a cache of pods: the one that has its guest, the one to which the guest moves, and
 * others, that are left over or not in use yet. Which is which is said by the instance's status alone.
 */
import { CREATED_BY_LABEL, MIGRATION_UID_LABEL } from '#api/names.ts';
import { isMigrating } from '#api/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { launcherPodName, targetPodName } from '#controllers/vmi/launcher-pod.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** Pods by the uid of the instance that they say they are of. */
export const LAUNCHERS_BY_INSTANCE = 'launchers-by-instance';

export function launcherIndexKeys({ metadata }: Stored<Pod>): string[] {
  const uid = metadata.labels?.[CREATED_BY_LABEL];
  return uid === undefined ? [] : [uid];
}

/** Launcher pods by the node that they are on. */
export const LAUNCHERS_BY_NODE = 'launchers-by-node';

export function launcherNodes(pod: Stored<Pod>): string[] {
  return launcherIndexKeys(pod).length > 0 && pod.spec.nodeName ? [pod.spec.nodeName] : [];
}

export interface Launchers {
  /** It has the guest, or is to get it first. */
  readonly pod?: Stored<Pod>;
  /** While the guest moves: where it moves to. */
  readonly targetPod?: Stored<Pod>;
  /** Of migrations that were not told to anybody yet, or are over. */
  readonly otherPods: readonly Stored<Pod>[];
}

/** The pod that has the guest: until a migration has succeeded, the one that had it before. Pure. */
export function currentLauncherName(vmi: Vmi): string {
  const { completed, failed, sourcePod, targetPod } = vmi.status?.migrationState ?? {};
  const hasMoved = completed === true && failed !== true;
  return (hasMoved ? targetPod : sourcePod) || launcherPodName(vmi);
}

/** `pods` needs the index LAUNCHERS_BY_INSTANCE. */
export function launchersOf(pods: Pick<Informer<Pod>, 'byIndex'>, vmi: Vmi): Launchers {
  const own = pods.byIndex(LAUNCHERS_BY_INSTANCE, vmi.metadata.uid).filter((pod) => isLauncherOf(pod, vmi));
  const state = vmi.status?.migrationState;
  const current = currentLauncherName(vmi);
  const target = isMigrating(state) ? state?.targetPod : undefined;
  return {
    pod: own.find(({ metadata }) => metadata.name === current),
    targetPod: own.find(({ metadata }) => metadata.name === target),
    otherPods: own.filter(({ metadata: { name } }) => name !== current && name !== target),
  };
}

/** The one that has the guest. */
export function launcherOf(pods: Pick<Informer<Pod>, 'get'>, vmi: Vmi): Stored<Pod> | undefined {
  const { namespace } = vmi.metadata;
  const pod = pods.get(keyOf({ namespace, name: currentLauncherName(vmi) }));
  return pod !== undefined && isLauncherOf(pod, vmi) ? pod : undefined;
}

/** By its labels and its name: it is the instance's also when somebody took its owner away. Pure. */
export function isLauncherOf({ metadata }: Stored<Pod>, vmi: Vmi): boolean {
  const { namespace, name, labels = {} } = metadata;
  if (namespace !== vmi.metadata.namespace || labels[CREATED_BY_LABEL] !== vmi.metadata.uid) return false;
  const migration = labels[MIGRATION_UID_LABEL];
  return name === (migration === undefined ? launcherPodName(vmi) : targetPodName(vmi, migration));
}
