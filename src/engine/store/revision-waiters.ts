/** Callers that wait until a revision is durable. */

interface Waiter {
  readonly revision: number;
  settle(reached: boolean): void;
}

export class RevisionWaiters {
  readonly #waiters = new Set<Waiter>();

  /** Resolves to true when `revision` is announced, or to false if the signal aborts or `clear` is called first. */
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
