/**
 * Detects requests that block the event loop: measures the longest turn of this thread during a request, in CPU time,
 * because other processes on a busy machine make turns longer in wall-clock time.
 */

const MAX_TURN_MS = 100;
const REPEATS = 3;

export function isStall(millis: number, maxMs = MAX_TURN_MS): boolean {
  return millis > maxMs;
}

/** Reports whether each repetition is slow: a single long turn may be due to garbage collection. */
export async function stallsEachTime(send: () => Promise<unknown>, maxMs?: number): Promise<boolean> {
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const { millis } = await longestTurn(send);
    if (!isStall(millis, maxMs)) return false;
  }
  return true;
}

function cpuMillis(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Measures the longest turn during the work. */
export async function longestTurn<T>(work: () => Promise<T>): Promise<{ readonly millis: number; readonly result: T }> {
  let longest = 0;
  let isOver = false;
  await new Promise((resolve) => setImmediate(resolve));
  let before = cpuMillis();
  const measure = () => {
    const now = cpuMillis();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(measure);
  };
  setImmediate(measure);
  try {
    const result = await work();
    measure();
    return { millis: longest, result };
  } finally {
    isOver = true;
  }
}
