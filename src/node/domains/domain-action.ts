/** All that the agent ever does for one guest. act.ts carries it out; decide-domain.ts says when. */
import type { HotplugState } from '#node/domains/decide-hotplug.ts';
import type { HotplugDevice } from '#node/domains/hotplug-devices.ts';
import type { PodView } from '#node/pods/pod-status.ts';

export type DomainAction =
  /** Prepares the volumes, defines the domain and starts it. Only while there is no domain; what comes of it is an Attempt. */
  | { readonly do: 'start' }
  /** Only while it is paused, and only for the power button to be heard. */
  | { readonly do: 'resume' }
  /** Presses the power button; only while it runs. */
  | { readonly do: 'powerDown' }
  /** Switches it off; only once its time is up or nobody wants it any more. */
  | { readonly do: 'destroy'; readonly why: string }
  /** Clears away an ended or absent domain and what its volumes left; only when its end has been reported. */
  | { readonly do: 'remove' }
  | { readonly do: 'reportPod'; readonly view: PodView }
  /** Reads the devices of the guest from the hypervisor; where that fails it is due again after a while. */
  | { readonly do: 'learn' }
  /** Tells the instance what its guest is. Before anything is plugged or unplugged, so that who comes after us knows of it. */
  | { readonly do: 'reportVmi'; readonly hotplug: readonly HotplugState[] | undefined }
  /** Makes the volume of a device ready and plugs it in; only what the guest does not have. */
  | { readonly do: 'plug'; readonly device: HotplugDevice }
  /** Asks the guest to let go of it; may be repeated. */
  | { readonly do: 'unplug'; readonly device: HotplugDevice }
  /** Clears away what was made for a device; only when the guest has let go of it. */
  | { readonly do: 'clear'; readonly device: HotplugDevice }
  /** Pulls the cable of an interface that is there, or puts it back. */
  | { readonly do: 'setLink'; readonly device: HotplugDevice }
  /** Finds out whether a disk stands on the claim that the spec names: it may have been exchanged while nobody looked. */
  | { readonly do: 'verify'; readonly device: HotplugDevice }
  /** Begins to send the guest to the node that its instance names; only a guest that just runs. */
  | { readonly do: 'migrate' }
  /** Gives up what goes on, on its way out or in; nothing happens where it is decided already. */
  | { readonly do: 'abortMigration'; readonly why: string }
  /** Lets a guest go on that an earlier process began to send. */
  | { readonly do: 'takeBack' }
  /** Switches off a guest that was given to the target although nothing says so here: people may decide that. */
  | { readonly do: 'giveUp'; readonly to: string }
  /** Ends the process of a guest that has gone; only when the target has it. */
  | { readonly do: 'leave' }
  /** Lets a guest go on that came; only when the source has migrated. May be repeated. */
  | { readonly do: 'commit' }
  /** Asks the source what became of a guest that is stored here; the answer comes later. */
  | { readonly do: 'askOutcome' }
  /** Lets the pod object go; only when nothing of it is left here. */
  | { readonly do: 'removePod' }
  /** Looks again after this time, if nothing happens before. */
  | { readonly do: 'lookAgain'; readonly afterMs: number };

/** What came of the last try to start; kept until the domain runs or its pod is gone. */
export type Attempt =
  | {
      readonly is: 'waiting';
      readonly reason: string;
      readonly message: string;
      readonly tries: number;
      /** The time of the next try. */
      readonly dueAtMs: number;
    }
  | { readonly is: 'failed'; readonly reason: string; readonly message: string };

/** Since when the guest is asked to stop, and when the power button was pressed last. */
export interface Stopping {
  readonly sinceMs: number;
  readonly pressedAtMs?: number;
}
