/** Waits briefly for a resourceVersion that this server has not reached yet, then fails with a timeout. */
import type { Call } from '#engine/handlers/call.ts';
import { FUTURE_REVISION_WAIT_MS } from '#engine/request/limits.ts';
import { ApiError } from '#kube/api-error.ts';

export async function awaitRevision(call: Pick<Call, 'store' | 'clock' | 'request'>, revision: number): Promise<void> {
  const { store, clock, request } = call;
  if (revision <= store.revision) return;
  const waiting = new AbortController();
  const cancel = clock.after(FUTURE_REVISION_WAIT_MS, () => waiting.abort());
  const reached = await store.reached(revision, { signal: AbortSignal.any([waiting.signal, request.signal]) });
  cancel();
  if (!reached) throw tooLargeRevision(revision, store.revision);
}

export function tooLargeRevision(revision: number, current: number): ApiError {
  const text = 'Too large resource version';
  return new ApiError(504, 'Timeout', `Timeout: ${text}: ${revision}, current: ${current}`, {
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: text }], retryAfterSeconds: 1 },
  });
}
