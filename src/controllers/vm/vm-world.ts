/** Everything that a decision about one VirtualMachine may know. */
import type { VmLock } from '#controllers/vm/lock.ts';
import type { ValueSharers } from '#controllers/vm/identity/value-holders.ts';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { OwnedAddresses } from '#api/network/owned-addresses.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { SnapshotRecord } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { RestoreStatus } from '#api/virtual-machine-restore/kind.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export interface SharedMac {
  readonly macAddress: string;
  readonly sharers: ValueSharers;
}

export interface SharedAddress {
  readonly address: string;
  readonly sharers: ValueSharers;
}

export interface VmWorld {
  readonly vm: Stored<VirtualMachine>;
  /** The instance of the same name, if the VM owns it. */
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The instance of the same name, if the VM does not own it. */
  readonly foreignVmi?: Stored<VirtualMachineInstance>;
  /** True if the server still has the VM; set only if `foreignVmi` is an orphan. */
  readonly mayAdopt?: boolean;
  /** The instance as the server has it, if the VM is marked for one that the cache does not show. */
  readonly markedInstance?: Stored<VirtualMachineInstance>;
  /** The record of the same name, with any owner. */
  readonly identity?: Stored<VirtualMachineIdentity>;
  /** True if the record is being deleted and its VM, as read from the server, no longer needs it. */
  readonly recordIsReleasable?: boolean;
  /** Set if the VM had a record with devices and the server does not have it any more. */
  readonly lostRecord?: { readonly snapshot?: SnapshotRecord };
  readonly configuration: Configuration;
  /** The time since when uuid admission is active (api/identity/uuid-admission.ts); undefined if it is not known. */
  readonly uuidAdmissionSince?: string | undefined;
  /** The snapshot or restore that holds the VM, which does not start meanwhile. */
  readonly lock?: VmLock;
  /** The volumes of the restore that holds the VM, and the claims into which they are restored. */
  readonly restoredVolumes?: RestoreStatus['restores'];
  /** Other VMs with the same firmware uuid. */
  readonly sharers?: ValueSharers;
  /** The MAC addresses of the VM that other VMs have, too. */
  readonly sharedMacs?: readonly SharedMac[];
  /** Names of networks of the template for which there is no NetworkAttachmentDefinition. */
  readonly missingNetworks?: readonly string[];
  /** The addresses that the VM owns on the default network. */
  readonly addresses?: OwnedAddresses;
  /** The default network, if there is one. */
  readonly network?: GuestNetwork | undefined;
  /** The addresses of the VM that other VMs have or ask for, too. */
  readonly sharedAddresses?: readonly SharedAddress[];
  /** The claims that a start needs. */
  readonly claims: readonly NeededClaim[];
  /** Names of the claims of the VM that are being deleted: disks of its template, and its persistent state. */
  readonly deletedClaims?: readonly DeletedClaim[];
  /**
   * Claims that are marked as the state of the VM but have another owner, if the VM needs state and has no claim for
   * it.
   */
  readonly stateConflicts?: readonly Stored<PersistentVolumeClaim>[];
  /** The claims that may hold the state of the VM, and those that its status and its instance name. */
  readonly stateClaims?: readonly Stored<PersistentVolumeClaim>[];
  /** Returns the uid of the claim with this name, or undefined if there is none. */
  claimUidOf?(claimName: string): string | undefined;
  /** Returns the name of a VM because of which the claim cannot be the state of this VM (findStateBlocker). */
  diskUserOf?(claimName: string): string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface NeededClaim {
  readonly name: string;
  readonly claim?: PersistentVolumeClaim;
}

export interface DeletedClaim {
  readonly name: string;
  readonly holds: 'disk' | 'state';
  /** The volume that has its data. */
  readonly volume?: string;
}

/** The content of the condition Failure: why the VM was not started or changed. */
export interface VmFailure {
  readonly reason: string;
  readonly message: string;
}
