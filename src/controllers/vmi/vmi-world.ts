/** All that a decision about one VirtualMachineInstance may know. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** A claim that the instance names, as far as it is there. */
export interface ClaimView {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** Of a claim that names one; undefined when no watch has shown it yet. */
  readonly volume?: Stored<PersistentVolume>;
}

export interface VmiWorld {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** Its launcher pod. */
  readonly pod?: Stored<Pod>;
  /** Its launcher pod as it was seen last, when it had ended and is gone. */
  readonly lastPod?: Stored<Pod>;
  /** By name of the claim; what is not there is missing. */
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** Whether somebody answers for the pod's node. */
  readonly nodeAnswers: boolean;
  readonly now: string;
}
