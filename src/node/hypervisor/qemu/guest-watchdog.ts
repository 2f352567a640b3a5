/** What QEMU tells of a guest's watchdog: that it has fired, and what it does then. */
import type { Domain } from '../hypervisor.ts';
import type { QmpEvent } from './qmp.ts';

export class GuestWatchdog {
  readonly #changed: () => void;
  #fired: Domain['watchdog'];

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get view(): Pick<Domain, 'watchdog'> {
    return this.#fired === undefined ? {} : { watchdog: this.#fired };
  }

  /** Why QEMU has ended, where that was it: it does so without a word more. */
  get end(): string | undefined {
    return this.#fired?.action === 'poweroff'
      ? 'The guest did not feed its watchdog, which has switched it off.'
      : undefined;
  }

  heard({ name, data }: QmpEvent): void {
    if (name !== 'WATCHDOG') return;
    this.#fired = { times: (this.#fired?.times ?? 0) + 1, action: String(data['action']) };
    this.#changed();
  }
}
