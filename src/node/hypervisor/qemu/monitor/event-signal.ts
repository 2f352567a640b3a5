/**
 * Waits for a state that QEMU's events announce and that a query confirms. A lost event only delays the result until
 * the next poll.
 */
import type { Clock } from '#lib/clock.ts';

export class EventSignal {
  readonly #waiters = new Set<() => void>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  notify(): void {
    this.#count++;
    for (const wake of [...this.#waiters]) wake();
  }

  /** Resolves on the next event, or after the given time; rejects when the signal aborts. */
  wait(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        cancel();
        this.#waiters.delete(wake);
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
      this.#waiters.add(wake);
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort);
    });
  }
}

export interface WaitContext {
  readonly clock: Clock;
  readonly events: EventSignal;
}

/**
 * Calls `query` after each event, and at a fixed interval, until it returns a value. Returns undefined after the
 * timeout.
 */
export async function pollOnEvents<T>(
  { clock, events }: WaitContext,
  { timeoutMs, everyMs, signal }: { timeoutMs: number; everyMs: number; signal?: AbortSignal | undefined },
  query: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const deadline = clock.elapsed() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const { count } = events;
    const found = await query();
    if (found !== undefined) return found;
    if (clock.elapsed() >= deadline) return undefined;
    // An event during the query may have changed its result, so query again.
    if (events.count === count) await events.wait(clock, everyMs, signal);
  }
}
