/**
 * Records an Event when the watchdog of a guest fires. Without it, the following reset or shutdown would look as if the guest
 * had caused it.
 */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { EventRecorder } from '#runtime/events.ts';

interface WatchdogEventParts {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'onChange'>;
  /** Returns the instance of a domain. */
  readonly vmiOf: (id: string) => Stored<VirtualMachineInstance> | undefined;
  readonly events: Pick<EventRecorder, 'record'>;
}

const ACTION_TEXTS: Readonly<Record<string, string>> = {
  reset: 'is restarted',
  poweroff: 'is switched off',
  shutdown: 'is asked to shut down',
};

/** Starts to record. Returns a function that stops it. A watchdog that fires while no agent is running is not recorded. */
export function recordWatchdogEvents({ hypervisor, vmiOf, events }: WatchdogEventParts): () => void {
  const recorded = new Map<string, number>();
  return hypervisor.onChange((id) => {
    const domain = hypervisor.get(id);
    if (domain === undefined) recorded.delete(id);
    const { times, action } = domain?.watchdog ?? { times: 0, action: '' };
    if (times <= (recorded.get(id) ?? 0)) return;
    recorded.set(id, times);
    const vmi = vmiOf(id);
    if (vmi === undefined) return;
    const message = `The guest did not reset its watchdog in time and ${ACTION_TEXTS[action] ?? `the action is ${action}`}.`;
    events.record(vmi, { type: 'Warning', reason: 'WatchdogExpired', message });
  });
}
