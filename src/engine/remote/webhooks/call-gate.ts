/** Limits the concurrent and waiting calls of one webhook, so that a slow webhook delays only its own requests. */
import { TooManyCalls } from '#engine/remote/webhooks/call-failure.ts';

export interface GateLimits {
  readonly running: number;
  readonly waiting: number;
}

export class CallGate {
  readonly #limits: GateLimits;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `fn` when there is a free slot. Rejects with the signal's reason if that comes first, and with TooManyCalls.
   */
  async run<T>(fn: () => Promise<T>, { signal }: { signal: AbortSignal }): Promise<T> {
    if (this.#running >= this.#limits.running) await this.#turn(signal);
    else this.#running++;
    try {
      return await fn();
    } finally {
      this.#pass();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#limits.waiting) return Promise.reject(new TooManyCalls(this.#limits.waiting));
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(enter);
        reject(signal.reason as Error);
      };
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.add(enter);
    });
  }

  /** Passes the slot to the longest waiting call, or frees it. */
  #pass(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#running--;
    } else {
      this.#waiting.delete(next);
      next();
    }
  }
}
