/** Repeats calls to a server that may be unavailable for a while. Refusals are thrown. */
import { delay } from '#client/abort.ts';
import { TransportError } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

export interface RetryParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const BACKOFF = { firstMs: 500, maxMs: 30_000 };

/**
 * Repeats `work` until it succeeds or fails permanently. `what` completes "Cannot ...". Rejects when the signal aborts.
 */
export async function withRetries<T>(
  { clock, log, signal }: RetryParts,
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!isTransient(error)) throw error;
      log.warn({ err: error, failures }, `Cannot ${what}; trying again`);
      await delay(clock, backoffMs(failures, BACKOFF), { signal });
    }
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof ApiError) return error.code >= 500 || error.code === 429 || error.code === 409;
  return error instanceof TransportError;
}
