/** Keeps the process alive while it waits. Timers of the clock do not, and there may be no open connection. */
import type { Clock } from '#lib/clock.ts';

const ALIVE_MS = 60_000;

/** Keeps the process alive during the work. */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    return await work();
  } finally {
    clearInterval(alive);
  }
}

/** Waits for this time and keeps the process alive. */
export function sleepAlive(clock: Clock, ms: number): Promise<void> {
  return keepAlive(() => new Promise((resolve) => void clock.after(ms, resolve)));
}
