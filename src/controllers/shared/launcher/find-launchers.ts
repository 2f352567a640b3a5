/**
 * Finds the launcher pods of an instance in a cache of pods: the one that has its guest, the target of a migration, and
 * others, which are unused or not in use yet. The status of the instance alone decides which is which.
 */
import { CREATED_BY_LABEL, MIGRATION_UID_LABEL } from '#api/names.ts';
import { isMigrating } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { launcherPodName, targetPodName } from '#controllers/shared/launcher/launcher-pod.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** The name of an index: pods by the uid of the instance in their label. */
export const LAUNCHERS_BY_INSTANCE = 'launchers-by-instance';

export function launcherIndexKeys({ metadata }: Stored<Pod>): string[] {
  const uid = metadata.labels?.[CREATED_BY_LABEL];
  return uid === undefined ? [] : [uid];
}

/** The name of an index: launcher pods by their node. */
export const LAUNCHERS_BY_NODE = 'launchers-by-node';

export function launcherNodes(pod: Stored<Pod>): string[] {
  return launcherIndexKeys(pod).length > 0 && pod.spec.nodeName ? [pod.spec.nodeName] : [];
}

interface Launchers {
  /** The pod that has the guest, or will start it. */
  readonly pod?: Stored<Pod>;
  /** The target pod, while the guest migrates. */
  readonly targetPod?: Stored<Pod>;
  /** Pods of migrations that are over or not announced in the status yet. */
  readonly otherPods: readonly Stored<Pod>[];
}

/** Returns the name of the pod that has the guest: the source pod until a migration has succeeded. Pure. */
export function currentLauncherName(vmi: Vmi): string {
  const { completed, failed, sourcePod, targetPod } = vmi.status?.migrationState ?? {};
  const hasMoved = completed === true && failed !== true;
  return (hasMoved ? targetPod : sourcePod) || launcherPodName(vmi);
}

/** Returns all launcher pods of the instance. `pods` needs the index LAUNCHERS_BY_INSTANCE. */
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

/** Returns the pod that has the guest. */
export function launcherOf(pods: Pick<Informer<Pod>, 'get'>, vmi: Vmi): Stored<Pod> | undefined {
  const { namespace } = vmi.metadata;
  const pod = pods.get(keyOf({ namespace, name: currentLauncherName(vmi) }));
  return pod !== undefined && isLauncherOf(pod, vmi) ? pod : undefined;
}

/** Compares labels and name, so that a pod without its owner reference still belongs to its instance. Pure. */
export function isLauncherOf({ metadata }: Stored<Pod>, vmi: Vmi): boolean {
  const { namespace, name, labels = {} } = metadata;
  if (namespace !== vmi.metadata.namespace || labels[CREATED_BY_LABEL] !== vmi.metadata.uid) return false;
  const migration = labels[MIGRATION_UID_LABEL];
  return name === (migration === undefined ? launcherPodName(vmi) : targetPodName(vmi, migration));
}
