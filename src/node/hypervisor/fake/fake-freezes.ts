/** The freezes of simulated guests that this process knows: it runs the timers that thaw them. */
import type { Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { GuestFreeze } from '#node/hypervisor/guest-freeze.ts';
import type { FakeHost } from '#node/hypervisor/fake/fake-host.ts';

export class FakeFreezes {
  readonly #clock: Clock;
  readonly #host: FakeHost;
  readonly #freezes = new Map<string, GuestFreeze>();

  constructor(clock: Clock, host: FakeHost) {
    this.#clock = clock;
    this.#host = host;
  }

  freezeOf(id: string): GuestFreeze {
    const existing = this.#freezes.get(id);
    if (existing !== undefined) return existing;
    const guest = () => this.#host.guest(id);
    const freeze = new GuestFreeze({
      clock: this.#clock,
      log: silentLog,
      askAgent: async (command) => guest()?.askAgent(command),
      readRecord: () => guest()?.record.frozen,
      writeRecord: async (frozen) => guest()?.writeFrozen(frozen),
      hasEnded: () => (guest()?.record.current.state ?? 'ended') === 'ended',
    });
    this.#freezes.set(id, freeze);
    return freeze;
  }

  /** Takes over freezes that an earlier process left. */
  adopt(): void {
    for (const { record } of this.#host.guests()) {
      if (record.frozen !== undefined) void this.freezeOf(record.id).reconcile();
    }
  }

  forget(id: string): void {
    this.#freezes.get(id)?.close();
    this.#freezes.delete(id);
  }

  close(): void {
    for (const id of [...this.#freezes.keys()]) this.forget(id);
  }
}
