/** The pod to which the guest is to go: as the one that it is in, but for its node and the claim of its state. Pure. */
import type { MigrationState } from '#api/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import { buildLauncherPod } from '#controllers/vmi/launcher-pod.ts';
import type { PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

interface Target {
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly sourcePod: Stored<Pod>;
  readonly state: MigrationState;
  /** Perhaps only about to be made: its name is all that a pod says of it, and it has no volume before it has a node. */
  readonly claim?: PersistentVolumeClaim;
}

export function buildTargetPod({ migration, claims }: MigrationWorld, { vmi, sourcePod, state, claim }: Target): Pod {
  const { sourceNode = '' } = state;
  const { addedNodeSelector } = migration.spec;
  const stateView = claim === undefined ? undefined : { claim: claim as Stored<PersistentVolumeClaim> };
  const target = { uid: migration.metadata.uid, sourceNode, sourcePod, addedNodeSelector };
  return buildLauncherPod(vmi, claims, stateView, target);
}
