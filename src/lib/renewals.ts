/** Certificates in a process that may run for longer than they last: made anew in good time, again and again. */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

/** They last a year. */
const RENEW_MS = 7 * 24 * 60 * 60 * 1000;

/** Does it again and again; one that fails is tried at the next time. The result ends it. */
export function renewing(renew: () => Promise<void>, { clock, log }: { clock: Clock; log: Log }): () => Promise<void> {
  let running = Promise.resolve();
  let stop = () => {};
  const wait = () => {
    stop = clock.after(RENEW_MS, () => {
      running = renew()
        .catch((err: unknown) => log.warn({ err }, 'Cannot renew certificates; trying again in a week'))
        .finally(wait);
    });
  };
  wait();
  return async () => {
    await running;
    stop();
  };
}

/** What `make` gave last, and made anew where that is old. */
export function renewed<T>(make: () => T, clock: Clock): () => T {
  let [made, atMs] = [make(), clock.now()];
  return () => {
    if (clock.now() - atMs >= RENEW_MS) [made, atMs] = [make(), clock.now()];
    return made;
  };
}
