/** All that a decision about one VirtualMachine may know. */
import type { VmLock } from '#controllers/vm/lock.ts';
import type { UuidSharers } from '#controllers/vm/uuid-holders.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { RecordedInSnapshot } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export interface VmWorld {
  readonly vm: Stored<VirtualMachine>;
  /** The instance of the same name, if it is the VM's own. */
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The instance of the same name, if it is somebody else's: it is left alone. */
  readonly stranger?: Stored<VirtualMachineInstance>;
  /** Whether the VM is still there by a live look, for a stranger that nobody owns. */
  readonly mayAdopt?: boolean;
  /** The instance that a live look has found, where the VM is marked for one that the cache does not show. */
  readonly markedInstance?: Stored<VirtualMachineInstance>;
  /** The record of the same name, whoever owns it. */
  readonly identity?: Stored<VirtualMachineIdentity>;
  /** Whether the record is being deleted and its VM, seen live, no longer needs it. */
  readonly recordIsReleasable?: boolean;
  /** Set where the VM has had its devices on record and, by a live look, has them no more. */
  readonly lost?: { readonly snapshot?: RecordedInSnapshot };
  readonly configuration: Configuration;
  /** When uuid admission first stood (api/uuid-admission.ts); undefined where it is not known. */
  readonly uuidAdmissionSince?: string | undefined;
  /** Who holds the VM, so that it starts nothing. */
  readonly lock?: VmLock;
  /** Other VMs of the same firmware uuid. */
  readonly sharers?: UuidSharers;
  /** The claims without which the template does not start. */
  readonly claims: readonly ClaimView[];
  /** Claims that are marked as the state of the VM and belong to somebody else, where it needs state and has none. */
  readonly stateConflicts?: readonly Stored<PersistentVolumeClaim>[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface ClaimView {
  readonly name: string;
  readonly claim?: PersistentVolumeClaim;
}

export function templateSpec({ spec }: Pick<VirtualMachine, 'spec'>): VmiSpec {
  return spec.template.spec ?? { domain: {} };
}
