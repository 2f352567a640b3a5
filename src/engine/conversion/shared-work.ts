/** Work that several wait for: done once, and called off when the last of them has left. */
import { raced } from '#lib/raced.ts';

export class SharedWork {
  readonly #controller = new AbortController();
  readonly #done: Promise<void>;
  #waiting = 0;

  constructor(start: (signal: AbortSignal) => Promise<void>) {
    this.#done = start(this.#controller.signal);
    // Whoever waits is told.
    this.#done.catch(() => {});
  }

  /** Rejects as the work does, and with the reason of `signal`. */
  async wait(signal: AbortSignal): Promise<void> {
    this.#waiting++;
    try {
      await raced(this.#done, signal);
    } finally {
      this.#waiting--;
      if (this.#waiting === 0) this.#controller.abort();
    }
  }
}
