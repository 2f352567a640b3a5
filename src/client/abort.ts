/** Cancellation and waiting, on the handed-in clock. */
import type { Clock } from '#lib/clock.ts';

/** Resolves after `ms`, or at once when the signal aborts; the caller looks at the signal. */
export function delay(clock: Clock, ms: number, { signal }: { signal: AbortSignal }): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal.addEventListener('abort', done);
  });
}

export interface Attempt {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Must be called when the attempt is over; afterwards nothing aborts it. */
  release(): void;
}

/** One attempt at something: aborted with the outer signal, or with `error()` when its time is up. */
export function startAttempt(
  clock: Clock,
  { timeoutMs, error, signal }: { timeoutMs: number; error: () => Error; signal?: AbortSignal | undefined },
): Attempt {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort);
  const cancel = clock.after(timeoutMs, () => controller.abort(error()));
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release() {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    },
  };
}

/** The promise, or the signal's reason as soon as it aborts; what the promise does later is ignored. */
export function abortable<V>(promise: Promise<V>, signal: AbortSignal | undefined): Promise<V> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
