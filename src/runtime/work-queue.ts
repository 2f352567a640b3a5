/**
 * A queue of names. It decides when a name is worked on, never what is done; whoever adds a name says only "look at
 * this again".
 *
 *                  add              a worker is free
 *   absent ──────────────► ready ─────────────────► running ──done──► absent
 *     │                     ▲ ▲                        │ add
 *     └─addAfter─► delayed ─┘ └──────────done──────── running, to be looked at again
 *
 * A name is ready at most once and never worked on twice at a time. Failures of a name delay its next turn ever more;
 * a success forgets them, and also the times that were asked for before its turn: it has looked, and says when again.
 */
import { backoffMs } from '#lib/backoff.ts';
import type { BackoffOptions } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';

/** What is to happen next with the name; nothing, unless somebody adds it. */
export interface WorkResult {
  /** Look again after this time. */
  readonly afterMs?: number | undefined;
  /** Look again with the delay of a failure, although it is none to be told of. */
  readonly retry?: boolean;
  /** What went wrong: the same as throwing it, but for `afterMs`, which counts where it comes before the delay. */
  readonly failed?: unknown;
}

export interface QueueMetrics {
  /** How many names are ready. */
  depth?(count: number): void;
  retried?(): void;
  /** How long a turn took, and whether it threw. */
  worked?(durationMs: number, outcome: 'done' | 'failed'): void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly work: (key: string) => Promise<WorkResult | void>;
  /** What `work` throws ends up here and nowhere else; the name comes again after `delayMs`. */
  readonly onError: (key: string, error: unknown, retry: { failures: number; delayMs: number }) => void;
  readonly concurrency?: number;
  readonly backoff?: BackoffOptions;
  readonly metrics?: QueueMetrics;
}

/** client-go's: 5 ms, 10 ms, 20 ms ... but no longer than five minutes. */
const BACKOFF: BackoffOptions = { firstMs: 5, maxMs: 300_000 };

interface Delayed {
  readonly atMs: number;
  readonly cancel: () => void;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #concurrency: number;
  readonly #ready = new Set<string>();
  /** The value says whether the name was added again meanwhile. */
  readonly #running = new Map<string, boolean>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #idleWaiters = new Set<() => void>();
  #state: 'open' | 'draining' | 'closed' = 'open';
  #dispatching = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#concurrency = options.concurrency ?? 1;
  }

  /** Names that wait for a worker; those that are delayed or running do not count. */
  get depth(): number {
    return this.#ready.size;
  }

  /** How many names wait for their time. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Reports whether the name is about to be worked on: now, or again because its last turn failed. */
  isPending(key: string): boolean {
    return this.#ready.has(key) || this.#running.has(key) || this.#failures.has(key);
  }

  /** Returns how long the name still waits for its time, or undefined where it waits for none. */
  delayMs(key: string): number | undefined {
    const delayed = this.#delayed.get(key);
    return delayed === undefined ? undefined : Math.max(0, delayed.atMs - this.#options.clock.now());
  }

  add(key: string): void {
    if (this.#state !== 'open') return;
    this.#enqueue(key);
    if (this.#dispatching) return;
    // In a later tick: adding a name never runs its work inside of the caller, and a burst of adds is one turn.
    this.#dispatching = true;
    queueMicrotask(() => {
      this.#dispatching = false;
      this.#dispatch();
    });
  }

  /** The earlier of two times counts; an `add` meanwhile takes neither away, a turn that succeeds takes both. */
  addAfter(key: string, ms: number): void {
    if (this.#state !== 'open') return;
    if (ms <= 0) return this.add(key);
    const { clock } = this.#options;
    const atMs = clock.now() + ms;
    const waiting = this.#delayed.get(key);
    if (waiting !== undefined && waiting.atMs <= atMs) {
      // Asked for anew: the turn that runs must not take it away as one from before it.
      this.#delayed.set(key, { ...waiting });
      return;
    }
    waiting?.cancel();
    const cancel = clock.after(ms, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { atMs, cancel });
  }

  /** Resolves when no name is ready or running; delayed ones do not count. */
  idle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.add(resolve));
  }

  /** Takes nothing more. With `drain` it works off what is ready; resolves when the last worker is done. */
  async shutdown({ drain = false }: { drain?: boolean } = {}): Promise<void> {
    if (this.#state === 'open') this.#state = drain ? 'draining' : 'closed';
    if (!drain) this.#ready.clear();
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    this.#measureDepth();
    await this.idle();
    this.#state = 'closed';
    this.#failures.clear();
  }

  #enqueue(key: string): void {
    if (this.#running.has(key)) this.#running.set(key, true);
    else this.#ready.add(key);
    this.#measureDepth();
  }

  #dispatch(): void {
    for (const key of this.#ready) {
      if (this.#running.size >= this.#concurrency) return;
      this.#ready.delete(key);
      this.#running.set(key, false);
      this.#measureDepth();
      void this.#turn(key);
    }
  }

  async #turn(key: string): Promise<void> {
    const { clock, work, onError, metrics } = this.#options;
    const startedAt = clock.now();
    const before = this.#delayed.get(key);
    const result = await outcomeOf(work, key);
    const failed = result.failed !== undefined;
    metrics?.worked?.(clock.now() - startedAt, failed ? 'failed' : 'done');
    try {
      if (failed) onError(key, result.failed, this.#retry(key, result.afterMs));
      else if (result.retry) this.#retry(key, result.afterMs);
      else this.#succeeded(key, before, result.afterMs);
    } finally {
      this.#finish(key);
    }
  }

  /** What was asked for during the turn stays: the turn may have looked before. */
  #succeeded(key: string, before: Delayed | undefined, afterMs: number | undefined): void {
    this.#failures.delete(key);
    if (before !== undefined && this.#delayed.get(key) === before) {
      before.cancel();
      this.#delayed.delete(key);
    }
    if (afterMs !== undefined) this.addAfter(key, afterMs);
  }

  /** `afterMs` of 0 does not count: it means right after a success, and a failure must not spin. */
  #retry(key: string, afterMs = 0): { failures: number; delayMs: number } {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    const backoff = backoffMs(failures, this.#options.backoff ?? BACKOFF);
    const delayMs = afterMs > 0 ? Math.min(afterMs, backoff) : backoff;
    if (this.#state === 'open') this.#failures.set(key, failures);
    this.#options.metrics?.retried?.();
    this.addAfter(key, delayMs);
    return { failures, delayMs };
  }

  #finish(key: string): void {
    const again = this.#running.get(key);
    this.#running.delete(key);
    if (again && this.#state !== 'closed') this.#enqueue(key);
    this.#dispatch();
    if (!this.#isIdle()) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters.clear();
  }

  #isIdle(): boolean {
    return this.#ready.size === 0 && this.#running.size === 0;
  }

  #measureDepth(): void {
    this.#options.metrics?.depth?.(this.#ready.size);
  }
}

async function outcomeOf(work: WorkQueueOptions['work'], key: string): Promise<WorkResult> {
  try {
    return (await work(key)) ?? {};
  } catch (error) {
    return { failed: error ?? new Error('thrown without a reason') };
  }
}
