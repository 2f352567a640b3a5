/** Renews certificates in a process that can run longer than they are valid. */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

/** Once a week; the certificates are valid for a year. */
const RENEW_MS = 7 * 24 * 60 * 60 * 1000;

/** Calls `renew` once a week, also after a failure. Returns a function that stops it. */
export function renewWeekly(
  renew: () => Promise<void>,
  { clock, log }: { clock: Clock; log: Log },
): () => Promise<void> {
  let running = Promise.resolve();
  let stop = () => {};
  const scheduleNext = () => {
    stop = clock.after(RENEW_MS, () => {
      running = renew()
        .catch((err: unknown) => log.warn({ err }, 'Cannot renew the certificates; retrying in a week'))
        .finally(scheduleNext);
    });
  };
  scheduleNext();
  return async () => {
    await running;
    stop();
  };
}

/** Returns a getter of the result of `make`, which it makes again once the last one is a week old. */
export function renewOnRead<T>(make: () => T, clock: Clock): () => T {
  let [value, madeAtMs] = [make(), clock.now()];
  return () => {
    if (clock.now() - madeAtMs >= RENEW_MS) [value, madeAtMs] = [make(), clock.now()];
    return value;
  };
}
