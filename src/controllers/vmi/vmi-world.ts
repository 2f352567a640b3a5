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
  | { readonly is: 'impossible'; readonly problem: string };

export interface VmiWorld {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** Its launcher pod. */
  readonly pod?: Stored<Pod>;
  /** Its launcher pod as it was seen last, when it had ended and is gone. */
  readonly lastPod?: Stored<Pod>;
  /** By name of the claim; what is not there is missing. */
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** Of an instance that has persistent state: the claim that its pod names, or is to name. */
  readonly state?: StateView;
  /** Whether somebody answers for the pod's node. */
  readonly nodeAnswers: boolean;
  readonly now: string;
}
