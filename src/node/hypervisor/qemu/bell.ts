/** Waiting for something that events announce, and that is looked at to be known: an event that got lost costs a moment. */
import type { Clock } from '#lib/clock.ts';

export class Bell {
  readonly #waiting = new Set<() => void>();
  #rings = 0;

  get rings(): number {
    return this.#rings;
  }

  ring(): void {
    this.#rings++;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when it is rung for the next time, or when the time is over; rejects by the signal. */
  wait(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        cancel();
        this.#waiting.delete(wake);
        signal?.removeEventListener('abort', abort);
      };
      const wake = () => {
        stop();
        resolve();
      };
      const abort = () => {
        stop();
        reject(signal?.reason as Error);
      };
      const cancel = clock.after(ms, wake);
      this.#waiting.add(wake);
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort);
    });
  }
}

export interface Waiting {
  readonly clock: Clock;
  readonly bell: Bell;
}

/** Looks until `look` finds something: with each ring, and every so often. Undefined when the time is over. */
export async function whenRung<T>(
  { clock, bell }: Waiting,
  { timeoutMs, everyMs, signal }: { timeoutMs: number; everyMs: number; signal?: AbortSignal | undefined },
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const deadline = clock.elapsed() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const { rings } = bell;
    const found = await look();
    if (found !== undefined) return found;
    if (clock.elapsed() >= deadline) return undefined;
    // What happened during the look counts: it is looked at once more.
    if (bell.rings === rings) await bell.wait(clock, everyMs, signal);
  }
}
