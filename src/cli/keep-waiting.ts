import type { Clock } from '#lib/clock.ts';

/** Keeps the program alive meanwhile, as the clock's own timers do not: nothing else may be under way. */
export async function keepWaiting(clock: Clock, ms: number): Promise<void> {
  const alive = setInterval(() => {}, ms);
  await new Promise<void>((resolve) => void clock.after(ms, resolve));
  clearInterval(alive);
}
