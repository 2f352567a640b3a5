/** Tracks the watchdog of a guest: QEMU's events that it has fired, and the action it took. */
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import { asText, type QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';

export class GuestWatchdog {
  readonly #onChange: () => void;
  #fired: DomainInfo['watchdog'];

  constructor(changed: () => void) {
    this.#onChange = changed;
  }

  get view(): Pick<DomainInfo, 'watchdog'> {
    return this.#fired === undefined ? {} : { watchdog: this.#fired };
  }

  /** Returns why QEMU ended, if the watchdog ended it; QEMU does not report that in its log. */
  get endMessage(): string | undefined {
    return this.#fired?.action === 'poweroff'
      ? 'The guest did not reset its watchdog in time, so the watchdog switched it off.'
      : undefined;
  }

  onEvent({ name, data }: QmpEvent): void {
    if (name !== 'WATCHDOG') return;
    this.#fired = { times: (this.#fired?.times ?? 0) + 1, action: asText(data['action']) };
    this.#onChange();
  }
}
