/** Work that several callers wait for: done once, and cancelled when the last of them leaves. */
import { raceSignal } from '#lib/race-signal.ts';

export class SharedWork {
  readonly #controller = new AbortController();
  readonly #done: Promise<void>;
  #waiting = 0;

  constructor(start: (signal: AbortSignal) => Promise<void>) {
    this.#done = start(this.#controller.signal);
    // The waiting callers get the error.
    this.#done.catch(() => {});
  }

  /** Rejects with the error of the work, or with the reason of `signal`. */
  async wait(signal: AbortSignal): Promise<void> {
    this.#waiting++;
    try {
      await raceSignal(this.#done, signal);
    } finally {
      this.#waiting--;
      if (this.#waiting === 0) this.#controller.abort();
    }
  }
}
