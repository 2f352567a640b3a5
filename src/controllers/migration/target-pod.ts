/** The target pod: like the source pod, except for its node and the claim of the persistent state. Pure. */
import type { MigrationState } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import { buildLauncherPod } from '#controllers/vmi/launcher-pod.ts';
import type { PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

interface TargetPodInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly sourcePod: Stored<Pod>;
  readonly state: MigrationState;
  /** May not exist yet: the pod only needs its name, and the claim is bound after the pod has a node. */
  readonly claim?: PersistentVolumeClaim;
}

export function buildTargetPod(
  { migration, claims }: MigrationWorld,
  { vmi, sourcePod, state, claim }: TargetPodInput,
): Pod {
  const { sourceNode = '' } = state;
  const { addedNodeSelector } = migration.spec;
  const stateView = claim === undefined ? undefined : { claim: claim as Stored<PersistentVolumeClaim> };
  const target = { uid: migration.metadata.uid, sourceNode, sourcePod, addedNodeSelector };
  return buildLauncherPod(vmi, claims, stateView, target);
}
