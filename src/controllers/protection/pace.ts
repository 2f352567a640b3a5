/** How fast something may be written that costs everybody who reads it: so often in a stretch of time, then a wait. */
export interface PaceOptions {
  readonly times: number;
  readonly periodMs: number;
}

export class Pace {
  readonly #options: PaceOptions;
  /** When it was done last, oldest first; no more than `times`. */
  #done: number[] = [];

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  done(nowMs: number): void {
    this.#done = [...this.#done, nowMs].slice(-this.#options.times);
  }

  /** 0: it may be done now. */
  waitMs(nowMs: number): number {
    const { times, periodMs } = this.#options;
    const [oldest] = this.#done;
    if (oldest === undefined || this.#done.length < times) return 0;
    return Math.max(0, oldest + periodMs - nowMs);
  }
}
