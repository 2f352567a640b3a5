/** Tells people that the watchdog of a guest has fired: what comes of it may look as if the guest did it by itself. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { EventRecorder } from '#runtime/events.ts';

export interface WatchdogNewsParts {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'onChange'>;
  /** The instance of a domain. */
  readonly vmiOf: (id: string) => Stored<VirtualMachineInstance> | undefined;
  readonly events: Pick<EventRecorder, 'record'>;
}

const MEANINGS: Readonly<Record<string, string>> = {
  reset: 'is reset',
  poweroff: 'is switched off',
  shutdown: 'is asked to shut down',
};

/** The result ends it. What fires while no agent of the node is there, nobody tells. */
export function tellWatchdogs({ hypervisor, vmiOf, events }: WatchdogNewsParts): () => void {
  const told = new Map<string, number>();
  return hypervisor.onChange((id) => {
    const domain = hypervisor.get(id);
    if (domain === undefined) told.delete(id);
    const { times, action } = domain?.watchdog ?? { times: 0, action: '' };
    if (times <= (told.get(id) ?? 0)) return;
    told.set(id, times);
    const vmi = vmiOf(id);
    if (vmi === undefined) return;
    const message = `The guest did not feed its watchdog in time, and ${MEANINGS[action] ?? `the action is ${action}`}.`;
    events.record(vmi, { type: 'Warning', reason: 'WatchdogExpired', message });
  });
}
