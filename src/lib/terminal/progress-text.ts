/** Texts of progress: sizes, rates, the time that is left, and bars. Pure. */
import { cutStartToWidth, displayWidth } from '#lib/terminal/display-width.ts';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
/** The span over which a rate is measured. */
const RATE_SPAN_MS = 10_000;
const SAMPLE_INTERVAL_MS = 200;
const MIN_LABEL_WIDTH = 8;
const MIN_BAR_WIDTH = 10;
const MAX_BAR_WIDTH = 40;

export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return unit === 0 ? `${bytes} B` : `${value.toFixed(1)} ${UNITS[unit]}`;
}

export const byteRateText = (bytesPerSecond: number) => `${bytesText(Math.round(bytesPerSecond))}/s`;

/** Renders `8s`, `3m20s` or `2h5m`. */
export function secondsText(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h${Math.floor((whole % 3600) / 60)}m`;
}

/** Returns `, 8s left`, or an empty text if nothing can be said. */
export function remainingText(left: number, perSecond: number): string {
  return left > 0 && perSecond > 0 ? `, ${secondsText(left / perSecond)} left` : '';
}

/** Measures a rate over the last seconds, so that the estimate follows a connection that becomes slower or faster. */
export class RateMeter {
  #samples: { readonly atMs: number; readonly done: number }[];

  constructor(atMs: number, done: number) {
    this.#samples = [{ atMs, done }];
  }

  /** Returns the amount per second, after `done` was reached at this time. */
  rate(atMs: number, done: number): number {
    const last = this.#samples.at(-1)!;
    if (atMs - last.atMs >= SAMPLE_INTERVAL_MS) this.#samples.push({ atMs, done });
    while (this.#samples.length > 2 && atMs - this.#samples[1]!.atMs >= RATE_SPAN_MS) this.#samples.shift();
    const first = this.#samples[0]!;
    return ((done - first.done) * 1000) / Math.max(atMs - first.atMs, 1);
  }
}

interface BarParts {
  readonly label: string;
  readonly done: number;
  readonly total: number;
  readonly detail: string;
}

/** Renders `disk root [=========>          ]  47% 1.2 GiB of 2.6 GiB`. A long label is shortened, and the bar is left out on a narrow terminal. */
export function barText({ label, done, total, detail }: BarParts, columns: number): string {
  // Rounded down, so that a full bar means that everything is done.
  const fraction = total > 0 ? Math.min(Math.max(done / total, 0), 1) : 1;
  const tail = `${String(Math.floor(fraction * 100)).padStart(3)}% ${detail}`;
  const free = columns - displayWidth(tail) - ' [] '.length;
  const head = cutStartToWidth(label, Math.max(MIN_LABEL_WIDTH, free - MIN_BAR_WIDTH));
  const room = free - displayWidth(head);
  if (room < MIN_BAR_WIDTH) return `${head} ${tail.trimStart()}`;
  const width = Math.min(room, MAX_BAR_WIDTH);
  const filled = Math.floor(width * fraction);
  const bar = filled === width ? '='.repeat(width) : `${'='.repeat(filled)}>`.padEnd(width);
  return `${head} [${bar}] ${tail}`;
}
