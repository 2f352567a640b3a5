/** The watchdog of a simulated guest, which fires when a test triggers it. */
import { invariant } from '#lib/invariant.ts';
import type { WatchdogAction } from '#api/domain/hardware.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { DomainInfo } from '../hypervisor.ts';

export class FakeWatchdog {
  #fired: DomainInfo['watchdog'];

  get view(): Pick<DomainInfo, 'watchdog'> {
    return this.#fired === undefined ? {} : { watchdog: this.#fired };
  }

  /** Counts the event and returns the action to take. */
  fire({ name, devices }: DomainDefinition): WatchdogAction {
    const [watchdog] = devices.flatMap((device) => (device.type === 'watchdog' ? device : []));
    invariant(watchdog !== undefined, `"${name}" has a watchdog`);
    this.#fired = { times: (this.#fired?.times ?? 0) + 1, action: watchdog.action };
    return watchdog.action;
  }
}
