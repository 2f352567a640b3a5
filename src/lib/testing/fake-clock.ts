/** A clock that advances only when a test says so. */
import type { Clock } from '#lib/clock.ts';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly fn: () => void;
}

const START_MS = 1_900_000_000_000;

export class FakeClock implements Clock {
  /** The monotonic time, which only `advance` changes. Timers use it. */
  #elapsedMs = 0;
  #wallOffsetMs = START_MS;
  #order = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#wallOffsetMs + this.#elapsedMs;
  }

  elapsed(): number {
    return this.#elapsedMs;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { atMs: this.#elapsedMs + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Fires due timers in order and lets the work of each complete before the next. */
  async advance(ms: number): Promise<void> {
    await settle();
    const untilMs = this.#elapsedMs + ms;
    for (let timer = this.#next(untilMs); timer !== undefined; timer = this.#next(untilMs)) {
      this.#timers.delete(timer);
      this.#elapsedMs = Math.max(this.#elapsedMs, timer.atMs);
      timer.fn();
      await settle();
    }
    this.#elapsedMs = untilMs;
  }

  /** Changes the wall clock, as if a user had set it. Timers are not affected. */
  setWallClockBy(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  #next(untilMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs > untilMs) continue;
      if (next === undefined || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order)) {
        next = timer;
      }
    }
    return next;
  }
}

/** Lets all work complete that waits only for promises. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}
