/** Cancellation and waiting, with a Clock. */
import type { Clock } from '#lib/clock.ts';

/** Resolves after `ms`, or at once if the signal is aborted. The caller checks the signal. */
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

export interface TimedAttempt {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Must be called when the attempt is over. Afterwards nothing aborts it. */
  release(): void;
}

/** Starts an attempt that is aborted with the outer signal, or with `error()` after the timeout. */
export function startAttempt(
  clock: Clock,
  { timeoutMs, error, signal }: { timeoutMs: number; error: () => Error; signal?: AbortSignal | undefined },
): TimedAttempt {
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
