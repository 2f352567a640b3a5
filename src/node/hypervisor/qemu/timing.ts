/** Waiting, always with an end and always by the Clock. */
import type { Clock } from '#lib/clock.ts';

export function delay(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** Undefined where the work takes longer than that; the work itself goes on, and its failure is nobody's any more. */
export function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(undefined));
    work.then(resolve, reject).finally(cancel);
  });
}

/** Looks again and again until `look` finds something; undefined when the time is over. */
export async function poll<T>(
  clock: Clock,
  { timeoutMs, everyMs }: { timeoutMs: number; everyMs: number },
  look: () => Promise<T | undefined> | T | undefined,
): Promise<T | undefined> {
  const deadline = clock.elapsed() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (clock.elapsed() >= deadline) return undefined;
    await delay(clock, everyMs);
  }
}
