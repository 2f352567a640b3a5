/** Everything that a decision about one VirtualMachineInstance may know. */
import type { AddressPlan } from '#api/network/plan-addresses.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { StateStorage } from '#controllers/shared/persistent-state/select-storage.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { HeldClaim } from '#controllers/vmi/claim-holders.ts';
import type { ResourcePolicy } from '#controllers/shared/launcher/launcher-resources.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** The storage of the persistent state of an instance. */
export type VmiStateView =
  | ({
      readonly kind: 'exists';
      /** True if the storage class binds the claim only when a pod that names it has a node. */
      readonly waitsForConsumer: boolean;
    } & ClaimView)
  | { readonly kind: 'wanted'; readonly storage: StateStorage }
  | { readonly kind: 'impossible'; readonly problem: string }
  /** A claim is marked as the state but has another owner (api/storage/state-conflict.ts). */
  | { readonly kind: 'disputed'; readonly problem: string };

export interface VmiWorld {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** The launcher pod that has the guest, or will start it. */
  readonly pod?: Stored<Pod>;
  /** The target pod, while the guest migrates. */
  readonly targetPod?: Stored<Pod>;
  /** Launcher pods of migrations that are over or have not begun. */
  readonly otherPods: readonly Stored<Pod>[];
  /** The last state of the launcher pod that had the guest, if it ended and is gone. */
  readonly lastPod?: Stored<Pod>;
  /** Existing claims by name. */
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** Claims of the instance that other instances hold. */
  readonly heldClaims: readonly HeldClaim[];
  /** The persistent state of an instance that has such: the claim that its pod names or will name. */
  readonly state?: VmiStateView;
  /** The addresses of an instance on the default network, until its launcher pod has them. */
  readonly addresses?: AddressPlan | undefined;
  /** True if this instance, or an earlier one of the same name, has an active migration. */
  readonly isMigrationActive: boolean;
  /** A sentence about the machine type, if the pod cannot be scheduled and no node offers that type. */
  readonly machineProblem?: string | undefined;
  /** True if the node of the pod is reachable. */
  readonly isNodeReachable: boolean;
  /** Decides about the resources of the pod. */
  readonly policy: ResourcePolicy;
  readonly now: string;
}
