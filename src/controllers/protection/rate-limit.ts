/** Limits expensive writes to a number of times per period. */
interface RateLimitOptions {
  readonly times: number;
  readonly periodMs: number;
}

export class RateLimit {
  readonly #options: RateLimitOptions;
  /** Times of the last writes, oldest first; at most `times`. */
  #done: number[] = [];

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Counts a write. */
  record(nowMs: number): void {
    this.#done = [...this.#done, nowMs].slice(-this.#options.times);
  }

  /** Returns the time until the next write is allowed; 0 if it is allowed now. */
  waitMs(nowMs: number): number {
    const { times, periodMs } = this.#options;
    const [oldest] = this.#done;
    if (oldest === undefined || this.#done.length < times) return 0;
    return Math.max(0, oldest + periodMs - nowMs);
  }
}
