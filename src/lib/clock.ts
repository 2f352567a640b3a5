/** The only module that reads the system clock; all others are given a Clock. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds since an arbitrary moment, for durations: changes of the system time do not affect it. */
  elapsed(): number;
  /** Calls `fn` once after `ms`; the returned function cancels it. A pending timer never keeps the process alive. */
  after(ms: number, fn: () => void): () => void;
}

/** setTimeout treats longer delays as 0. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, Math.min(ms, MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Returns the time in RFC 3339 with whole seconds, as Kubernetes writes metav1.Time. */
export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastTimestamp = `${new Date(ms).toISOString().slice(0, 19)}Z`;
  }
  return lastTimestamp;
}

/** The last result, because thousands of writes happen in the same second. */
let lastSecond = Number.NaN;
let lastTimestamp = '';

/** Returns the time in RFC 3339 with microseconds, as Kubernetes writes metav1.MicroTime. */
export function microTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
