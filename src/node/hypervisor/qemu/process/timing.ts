/** Waiting with a limit, by the Clock. */
import type { Clock } from '#lib/clock.ts';

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** Waits for the work. Returns undefined if it takes longer; it then continues, and its failure is ignored. */
export function waitAtMost<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(undefined));
    work.then(resolve, reject).finally(cancel);
  });
}

/** Calls `query` at an interval until it returns a value. Returns undefined after the timeout. */
export async function poll<T>(
  clock: Clock,
  { timeoutMs, everyMs }: { timeoutMs: number; everyMs: number },
  query: () => Promise<T | undefined> | T | undefined,
): Promise<T | undefined> {
  const deadline = clock.elapsed() + timeoutMs;
  for (;;) {
    const found = await query();
    if (found !== undefined) return found;
    if (clock.elapsed() >= deadline) return undefined;
    await sleep(clock, everyMs);
  }
}
