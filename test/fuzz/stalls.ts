/**
 * Whether a request holds the event loop: the longest turn of this thread while it is answered, in CPU time, because a
 * busy machine makes turns longer for the clock on the wall only.
 */
import type { FuzzRequest } from '#test/fuzz/requests.ts';

const MAX_TURN_MS = 100;
/** For larger bodies the time may grow with them, and no faster: an object of 50,000 fields is a lot of work. */
const BYTES_PER_TURN = 256 * 1024;
const REPEATS = 3;

export function isStall(millis: number, { body }: FuzzRequest): boolean {
  return millis > MAX_TURN_MS * Math.max(1, body.length / BYTES_PER_TURN);
}

/** One long turn may be the garbage collector's; the same request three times over is not. */
export async function stallsEachTime(send: () => Promise<unknown>, request: FuzzRequest): Promise<boolean> {
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const { millis } = await longestTurn(send);
    if (!isStall(millis, request)) return false;
  }
  return true;
}

function cpuMillis(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** While the work goes on. */
export async function longestTurn<T>(work: () => Promise<T>): Promise<{ readonly millis: number; readonly result: T }> {
  let longest = 0;
  let isOver = false;
  await new Promise((resolve) => setImmediate(resolve));
  let before = cpuMillis();
  const look = () => {
    const now = cpuMillis();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  const result = await work();
  isOver = true;
  look();
  return { millis: longest, result };
}
