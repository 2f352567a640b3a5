/**
 * Keeps the order of events for a watcher whose objects must be converted first: each step waits for the previous ones.
 * If nothing must be converted, as nearly always, a step runs at once.
 */
import { MAX_WATCH_BUFFER_BYTES } from '#engine/request/limits.ts';
import type { Entry, StoreEvent } from '#engine/store/store.ts';

interface SequencerOptions {
  /** Returns undefined if the entries can be shown at once. */
  prepare(entries: readonly Entry[]): Promise<void> | undefined;
  /** Called when more than MAX_WATCH_BUFFER_BYTES of live events are pending. */
  onOverflow(): void;
  onFailure(error: unknown): void;
}

export class WatchSequencer {
  readonly #options: SequencerOptions;
  #last: Promise<void> | undefined;
  #steps = 0;
  #bytes = 0;
  #stopped = false;

  constructor(options: SequencerOptions) {
    this.#options = options;
  }

  /** True if nothing is pending. */
  get idle(): boolean {
    return this.#steps === 0;
  }

  stop(): void {
    this.#stopped = true;
  }

  run(entries: readonly Entry[], step: () => void): void {
    if (this.#stopped) return;
    const preparing = this.#options.prepare(entries);
    if (preparing === undefined && this.idle) return step();
    // The failure is reported when the step's turn comes.
    preparing?.catch(() => {});
    this.#steps++;
    this.#last = (this.#last ?? Promise.resolve()).then(() => this.#turn(preparing, step));
  }

  /** Live events count against the limit. */
  runAll(events: readonly StoreEvent[], live: boolean, step: (live: boolean) => void): void {
    const entries = events.flatMap(({ entry, previous }) => (previous === undefined ? [entry] : [entry, previous]));
    const bytes = live ? events.reduce((sum, { entry }) => sum + entry.bytes.length, 0) : 0;
    this.#bytes += bytes;
    if (this.#bytes > MAX_WATCH_BUFFER_BYTES && !this.idle) return this.#options.onOverflow();
    this.run(entries, () => {
      this.#bytes -= bytes;
      step(live);
    });
  }

  async #turn(preparing: Promise<void> | undefined, step: () => void): Promise<void> {
    try {
      await preparing;
      if (!this.#stopped) step();
    } catch (error) {
      // After stop, nothing is reported.
      if (this.#stopped) return;
      this.#stopped = true;
      this.#options.onFailure(error);
    } finally {
      this.#steps--;
    }
  }
}
