/** The actions of the agent on one guest. decide-domain.ts decides on them; act-on-domain.ts carries them out. */
import type { HotplugState, HotplugDevice } from '#node/domains/hotplug/hotplug-devices.ts';
import type { PodView } from '#node/pods/pod-status.ts';

export type DomainAction =
  /** Prepares the volumes, defines the domain and starts it. Only if there is no domain. A failure is noted as StartAttempt. */
  | { readonly do: 'start' }
  /** Resumes a paused guest so that it can react to the power button. */
  | { readonly do: 'resume' }
  /** Presses the power button. Only while the guest runs. */
  | { readonly do: 'powerDown' }
  /** Switches the guest off. Only if its grace period is over, or if no pod needs it. */
  | { readonly do: 'destroy'; readonly why: string }
  /** Removes an ended or absent domain and releases its volumes. Only after its end was reported. */
  | { readonly do: 'remove' }
  | { readonly do: 'reportPod'; readonly view: PodView }
  /** Reads the devices of the guest from the hypervisor. A failed reading is repeated later. */
  | { readonly do: 'learn' }
  /**
   * Writes the agent's part of the instance's status. Before a device is plugged or unplugged, so that an agent that is
   * started later knows about it.
   */
  | { readonly do: 'reportVmi'; readonly hotplug: readonly HotplugState[] | undefined }
  /** Prepares the volume of a device and plugs the device in. Only if the guest does not have it. */
  | { readonly do: 'plug'; readonly device: HotplugDevice }
  /** Asks the guest to release a device. May be repeated. */
  | { readonly do: 'unplug'; readonly device: HotplugDevice }
  /** Releases the volume of a device. Only after the guest released the device. */
  | { readonly do: 'clear'; readonly device: HotplugDevice }
  /** Sets the link of a plugged interface up or down. */
  | { readonly do: 'setLink'; readonly device: HotplugDevice }
  /** Finds out whether a disk uses the claim in the spec, which may have changed while no agent was running. */
  | { readonly do: 'verify'; readonly device: HotplugDevice }
  /** Starts to send the guest to the target node in the instance's status. Only if nothing else is in progress. */
  | { readonly do: 'migrate' }
  /** Aborts an outgoing or incoming migration. Does nothing if the migration is committed already. */
  | { readonly do: 'abortMigration'; readonly why: string }
  /** Resumes a guest that an earlier process started to send. */
  | { readonly do: 'takeBack' }
  /**
   * Switches off a guest that belongs to the target although the record of this node does not say so. An administrator can
   * decide that while this node is unreachable.
   */
  | { readonly do: 'destroyStale'; readonly to: string }
  /** Ends the process of a migrated guest. Only after the target has committed. */
  | { readonly do: 'leave' }
  /** Resumes a received guest. Only after the source recorded `migrated`. May be repeated. */
  | { readonly do: 'commit' }
  /** Asks the source for the outcome of a migration whose guest is stored here. The answer arrives later. */
  | { readonly do: 'queryOutcome' }
  /** Deletes the pod object. Only if this node has nothing left of it. */
  | { readonly do: 'removePod' }
  /** Decides again after this time, if no change comes first. */
  | { readonly do: 'recheck'; readonly afterMs: number };
