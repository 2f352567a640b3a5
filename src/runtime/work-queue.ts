/**
 * A queue of keys. It decides when a key is processed, not what is done; adding a key only means "reconcile this
 * again".
 *
 *                  add              a worker is free
 *   absent ──────────────► ready ─────────────────► running ──done──► absent
 *     │                     ▲ ▲                        │ add
 *     └─addAfter─► delayed ─┘ └──────────done──────── running, to run again
 *
 * A key is ready at most once and never runs twice at the same time. Failures of a key delay its next run more and
 * more. A success resets this delay and discards times that were requested before the run: its result says when to run
 * again.
 */
import { backoffMs } from '#lib/backoff.ts';
import type { BackoffOptions } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';

/** The next step for the key. By default nothing happens until it is added again. */
export interface WorkResult {
  /** Run again after this time. */
  readonly afterMs?: number | undefined;
  /** Run again with the delay of a failure, without reporting an error. */
  readonly retry?: boolean;
  /** The error. Like throwing it, except that `afterMs` applies if it is shorter than the delay. */
  readonly failed?: unknown;
}

export interface QueueMetrics {
  /** The number of ready keys. */
  setDepth?(count: number): void;
  recordRetry?(): void;
  /** The duration of a run, and whether it failed. */
  recordRun?(durationMs: number, outcome: 'done' | 'failed'): void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly work: (key: string) => Promise<WorkResult | void>;
  /** Called with every error of `work`. The key runs again after `delayMs`. */
  readonly onError: (key: string, error: unknown, retry: { failures: number; delayMs: number }) => void;
  readonly concurrency?: number;
  readonly backoff?: BackoffOptions;
  readonly metrics?: QueueMetrics;
}

/** The delays of client-go: 5 ms, 10 ms, 20 ms ... up to five minutes. */
const BACKOFF: BackoffOptions = { firstMs: 5, maxMs: 300_000 };

interface Delayed {
  readonly atMs: number;
  readonly cancel: () => void;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #concurrency: number;
  readonly #ready = new Set<string>();
  /** The value is true if the key was added again in the meantime. */
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

  /** The number of keys that wait for a worker, without those that are delayed or running. */
  get depth(): number {
    return this.#ready.size;
  }

  /** The number of delayed keys. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Reports whether the key is ready or running, or will be retried after a failure. */
  isPending(key: string): boolean {
    return this.#ready.has(key) || this.#running.has(key) || this.#failures.has(key);
  }

  /** Returns the remaining delay of the key, or undefined if it is not delayed. */
  delayMs(key: string): number | undefined {
    const delayed = this.#delayed.get(key);
    return delayed === undefined ? undefined : Math.max(0, delayed.atMs - this.#options.clock.now());
  }

  add(key: string): void {
    if (this.#state !== 'open') return;
    this.#enqueue(key);
    if (this.#dispatching) return;
    // In a later tick, so that `add` never runs work inside its caller and many adds are dispatched together.
    this.#dispatching = true;
    queueMicrotask(() => {
      this.#dispatching = false;
      this.#dispatch();
    });
  }

  /**
   * Adds the key after a delay; the earlier of two times applies. `add` in the meantime keeps it, a successful run
   * discards it.
   */
  addAfter(key: string, ms: number): void {
    if (this.#state !== 'open') return;
    if (ms <= 0) return this.add(key);
    const { clock } = this.#options;
    const atMs = clock.now() + ms;
    const waiting = this.#delayed.get(key);
    if (waiting !== undefined && waiting.atMs <= atMs) {
      // A new request: a running key must not discard it as one from before its run.
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

  /** Resolves when no key is ready or running; delayed keys do not count. */
  idle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.add(resolve));
  }

  /** Accepts no more keys. With `drain`, completes the ready keys. Resolves when the last run has ended. */
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
      void this.#run(key);
    }
  }

  async #run(key: string): Promise<void> {
    const { clock, work, onError, metrics } = this.#options;
    const startedAt = clock.now();
    const before = this.#delayed.get(key);
    const result = await runWork(work, key);
    const failed = result.failed !== undefined;
    metrics?.recordRun?.(clock.now() - startedAt, failed ? 'failed' : 'done');
    try {
      if (failed) onError(key, result.failed, this.#retry(key, result.afterMs));
      else if (result.retry) this.#retry(key, result.afterMs);
      else this.#recordSuccess(key, before, result.afterMs);
    } finally {
      this.#finish(key);
    }
  }

  /** Resets failures and the time from before the run. Keeps a time that was requested during the run. */
  #recordSuccess(key: string, before: Delayed | undefined, afterMs: number | undefined): void {
    this.#failures.delete(key);
    if (before !== undefined && this.#delayed.get(key) === before) {
      before.cancel();
      this.#delayed.delete(key);
    }
    if (afterMs !== undefined) this.addAfter(key, afterMs);
  }

  /** Ignores an `afterMs` of 0, which means at once after a success: a failure must not run again without a delay. */
  #retry(key: string, afterMs = 0): { failures: number; delayMs: number } {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    const backoff = backoffMs(failures, this.#options.backoff ?? BACKOFF);
    const delayMs = afterMs > 0 ? Math.min(afterMs, backoff) : backoff;
    if (this.#state === 'open') this.#failures.set(key, failures);
    this.#options.metrics?.recordRetry?.();
    this.addAfter(key, delayMs);
    return { failures, delayMs };
  }

  #finish(key: string): void {
    const runAgain = this.#running.get(key);
    this.#running.delete(key);
    if (runAgain && this.#state !== 'closed') this.#enqueue(key);
    this.#dispatch();
    if (!this.#isIdle()) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters.clear();
  }

  #isIdle(): boolean {
    return this.#ready.size === 0 && this.#running.size === 0;
  }

  #measureDepth(): void {
    this.#options.metrics?.setDepth?.(this.#ready.size);
  }
}

async function runWork(work: WorkQueueOptions['work'], key: string): Promise<WorkResult> {
  try {
    return (await work(key)) ?? {};
  } catch (error) {
    return { failed: error ?? new Error('thrown without a reason') };
  }
}
