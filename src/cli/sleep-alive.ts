import type { Clock } from '#lib/clock.ts';

/** Waits for this time and keeps the process alive, which the timers of the clock do not. */
export async function sleepAlive(clock: Clock, ms: number): Promise<void> {
  const alive = setInterval(() => {}, ms);
  await new Promise<void>((resolve) => void clock.after(ms, resolve));
  clearInterval(alive);
}
