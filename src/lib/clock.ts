/** The one place that reads the system clock; everything else is handed a Clock. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some moment; for spans of time, because nobody can set it as the time of day can be set. */
  elapsed(): number;
  /** Calls `fn` once after `ms`; the returned function cancels it. A pending timer never keeps the process alive. */
  after(ms: number, fn: () => void): () => void;
}

/** setTimeout takes longer ones for no time at all. */
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

/** RFC 3339 with whole seconds, as Kubernetes writes metav1.Time. */
export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastTimestamp = `${new Date(ms).toISOString().slice(0, 19)}Z`;
  }
  return lastTimestamp;
}

/** Thousands of writes share a second. */
let lastSecond = Number.NaN;
let lastTimestamp = '';

/** RFC 3339 with microseconds, as Kubernetes writes metav1.MicroTime. */
export function microTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
