/** Who waits until a revision is durable. */

interface Waiter {
  readonly revision: number;
  settle(reached: boolean): void;
}

export class RevisionWaiters {
  readonly #waiters = new Set<Waiter>();

  /** True when `revision` is announced, false when the signal aborts or `clear` comes first. */
  wait(revision: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const abort = (): void => waiter.settle(false);
      const waiter: Waiter = {
        revision,
        settle: (reached) => {
          this.#waiters.delete(waiter);
          signal.removeEventListener('abort', abort);
          resolve(reached);
        },
      };
      this.#waiters.add(waiter);
      signal.addEventListener('abort', abort);
    });
  }

  announce(revision: number): void {
    for (const waiter of this.#waiters) if (waiter.revision <= revision) waiter.settle(true);
  }

  clear(): void {
    for (const waiter of this.#waiters) waiter.settle(false);
  }
}
