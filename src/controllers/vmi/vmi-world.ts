/** All that a decision about one VirtualMachineInstance may know. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { StateStorage } from '#controllers/persistent-state/select-storage.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** A claim that the instance names, as far as it is there. */
export interface ClaimView {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** Of a claim that names one; undefined when no watch has shown it yet. */
  readonly volume?: Stored<PersistentVolume>;
}

/** Where the state that outlives the guest lies, or is to lie. */
export type StateView =
  | ({
      readonly is: 'there';
      /** Whether its class binds it when a pod that names it has a node, and not before. */
      readonly waitsForConsumer: boolean;
    } & ClaimView)
  | { readonly is: 'wanted'; readonly storage: StateStorage }
  | { readonly is: 'impossible'; readonly problem: string }
  /** A claim is marked as the state and belongs to somebody else (api/state-conflict.ts). */
  | { readonly is: 'disputed'; readonly problem: string };

export interface VmiWorld {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** The launcher pod that has its guest, or is to get it first. */
  readonly pod?: Stored<Pod>;
  /** While the guest moves: the launcher pod that it moves to. */
  readonly targetPod?: Stored<Pod>;
  /** Launcher pods of it that migrations have left over, or are about to use. */
  readonly otherPods: readonly Stored<Pod>[];
  /** The launcher pod that had its guest, as it was seen last, when it had ended and is gone. */
  readonly lastPod?: Stored<Pod>;
  /** By name of the claim; what is not there is missing. */
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** Of an instance that has persistent state: the claim that its pod names, or is to name. */
  readonly state?: StateView;
  /** Whether the guest of an instance of this name, this one or an earlier one, may still be on its way. */
  readonly isMigrationActive: boolean;
  /** Whether somebody answers for the pod's node. */
  readonly nodeAnswers: boolean;
  readonly now: string;
}
